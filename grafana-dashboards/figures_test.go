package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// committedPanels are the titles of the panels in the committed JSON, by file.
func committedPanels(t *testing.T) map[panelOf]bool {
	t.Helper()
	all := map[panelOf]bool{}
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("files %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Type, Title string
				Panels      []struct{ Title string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range board.Panels {
			if p.Type != "row" {
				all[panelOf{filepath.Base(file), p.Title}] = true
			}
			for _, inner := range p.Panels {
				all[panelOf{filepath.Base(file), inner.Title}] = true
			}
		}
	}
	return all
}

// The numbers were counted in the texts of the papers: figures and tables with a caption, or with a reference in the text where the caption
// is lost (D-ITG: figures 1 to 36, tables 1 to 6). Parts a, b, c of a figure have a line each where different panels replace them.
func TestEveryFigureOfThePapersIsListed(t *testing.T) {
	for short, want := range map[string]struct{ figures, tables int }{
		"Woo 2010":         {35, 5},
		"Woo 2010, slides": {11, 0},
		"Halepovic 2008":   {18, 3},
		"D-ITG report":     {36, 6},
		"WPI report":       {15, 0},
	} {
		figures, tables := map[string]bool{}, map[string]bool{}
		for _, p := range papers() {
			if p.short != short {
				continue
			}
			for _, f := range p.figures {
				words := strings.Fields(f.name)
				switch words[0] {
				case "Table":
					tables[f.name] = true
				case "Figure":
					figures[strings.Join(words[:2], " ")] = true
				default:
					figures[f.name] = true
				}
			}
		}
		if len(figures) != want.figures || len(tables) != want.tables {
			t.Errorf("%s: %d figures and %d tables, want %d and %d", short, len(figures), len(tables), want.figures, want.tables)
		}
	}
}

func TestFiguresAreInTheOrderOfTheirPaper(t *testing.T) {
	for _, p := range papers() {
		seen, last := map[string]bool{}, map[string][2]int{}
		for _, f := range p.figures {
			if seen[f.name] || f.shows == "" {
				t.Errorf("%s: %s is listed twice, or does not say what it shows", p.short, f.name)
			}
			seen[f.name] = true
			words := strings.Fields(f.name)
			if words[0] != "Figure" && words[0] != "Table" {
				continue
			}
			at, err := ordinal(words[1])
			if err != nil || at[0] < last[words[0]][0] || at[0] == last[words[0]][0] && at[1] < last[words[0]][1] {
				t.Errorf("%s: %s is after %v, %v", p.short, f.name, last[words[0]], err)
			}
			last[words[0]] = at
		}
	}
}

func TestEveryFigureHasAPanelThatExists(t *testing.T) {
	panels, names, replaced := committedPanels(t), boardNames(), 0
	for _, p := range papers() {
		for _, f := range p.figures {
			if len(f.at) == 0 && f.why == "" {
				t.Errorf("%s, %s: no panel and no reason", p.short, f.name)
			}
			if len(f.at) > 0 {
				replaced++
			}
			for _, at := range p.places(f) {
				if !panels[at] {
					t.Errorf("%s, %s: dashboards/%s has no panel %q", p.short, f.name, at.file, at.panel)
				}
				if names[at.file] == "" {
					t.Errorf("%s, %s: no name of %s", p.short, f.name, at.file)
				}
			}
		}
	}
	if replaced < 95 {
		t.Errorf("panels replace %d figures, want at least 95", replaced)
	}
}

func TestTheREADMEHasTheTablesOfFigures(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := withFigures(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Error("README.md differs from the list of figures: run go generate")
	}
	if _, err := withFigures("# Dashboards\n"); err == nil {
		t.Error("a README without the place of the tables is no error")
	}
}

// A link of the page Paper opens the panel of a figure, with the path of the page.
func TestListsOfFiguresLinkToTheirPanels(t *testing.T) {
	ids := panelIDs(pages())
	for _, p := range papers() {
		panel, err := figureList(p, ids).Build()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(panel.Options)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.figures {
			for _, at := range f.at {
				link, err := json.Marshal(ids[at])
				if err != nil {
					t.Fatal(err)
				}
				if at.file != "paper.json" && (ids[at] == "" || !strings.Contains(string(text), strings.Trim(string(link), `"`))) {
					t.Errorf("%s, %s: the list has no link %q to %s of %s", p.short, f.name, ids[at], at.panel, at.file)
				}
			}
		}
	}
}

// The values of a paper stand with a figure, table or section, and a least value is not above the largest.
func TestPublishedValuesHaveTheirSource(t *testing.T) {
	all := 0
	for _, p := range papers() {
		for _, v := range publishedBy(p.short) {
			all++
			words := strings.Fields(v.figure)
			if len(words) < 2 || words[0] != "Figure" && words[0] != "Table" && words[0] != "Section" || v.quantity == "" || v.here == "" || v.low > v.high {
				t.Errorf("%s: %+v", p.short, v)
			}
		}
	}
	if all < 80 {
		t.Errorf("%d values, want at least 80", all)
	}
}

// ordinal is the number of a figure: "6.10" is 6, 10, and "15" is 15, 0.
func ordinal(text string) (at [2]int, err error) {
	for i, part := range strings.SplitN(text, ".", 2) {
		if at[i], err = strconv.Atoi(part); err != nil {
			return at, err
		}
	}
	return at, nil
}
