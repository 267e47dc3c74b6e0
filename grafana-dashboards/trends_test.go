package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestHoursOfTheWeekShowAllHours: a table of 24 rows without a scroll bar, since the evening is at its end. A row has 36 px, a unit of the grid
// 38 px less 8; the title takes 50 px, the header 28 px.
func TestHoursOfTheWeekShowAllHours(t *testing.T) {
	board, err := trendsBoard().Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if p.Panel != nil && p.Panel.Title != nil && strings.HasPrefix(*p.Panel.Title, "Hours of the week") {
			if got := 38*int(p.Panel.GridPos.H) - 8 - 50 - 28; got < 24*36 {
				t.Errorf("%d px for 24 rows of 36 px", got)
			}
			return
		}
	}
	t.Error("no panel")
}

// TestHoursOfTheWeekAreText: a number up to 23 beside delays below a second leaves all cells in the first color.
func TestHoursOfTheWeekAreText(t *testing.T) {
	built, err := weekTable().Build()
	if err != nil {
		t.Fatal(err)
	}
	kind := ""
	for _, s := range built.Transformations {
		text, err := json.Marshal(s.Options)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"number", "string"} {
			if s.Id == "convertFieldType" && strings.Contains(string(text), `{"destinationType":"`+k+`","targetField":"hour"}`) {
				kind = k
			}
		}
	}
	if kind != "string" {
		t.Errorf("the hours are %q in the end", kind)
	}
}
