package tcp

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

func TestSecondsOfALongRunAreJoined(t *testing.T) {
	for n, want := range map[int]string{0: "[]", 3: "[1 2 3]", 30: "30", 31: "16", 3600: "30"} {
		got := spans(n)
		if text := fmt.Sprint(got); text != want && strconv.Itoa(len(got)) != want {
			t.Errorf("%d seconds: %s, want %s", n, text, want)
		}
		if n > 0 && got[len(got)-1].to != n {
			t.Errorf("%d seconds end at %d", n, got[len(got)-1].to)
		}
	}
	rates := slices.Repeat([]float64{125_000, 375_000}, 20)
	if s := spans(len(rates))[19]; s.String() != "39 to 40" || s.mean(rates) != "2 Mb/s" {
		t.Errorf("%v: %s", s, s.mean(rates))
	}
}
