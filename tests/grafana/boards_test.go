package grafana

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// board is what a test compares of a dashboard's JSON.
type board struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Panels     []panel
	Links      []link
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

// raw reports whether the dashboard shows raw points, from InfluxDB.
func (b board) raw() bool { return strings.HasPrefix(b.UID, "oneway-raw-") }

type panel struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Targets     json.RawMessage `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			NoValue string `json:"noValue"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

type link struct {
	Title string `json:"title"`
	Type  string `json:"type"`
	URL   string `json:"url"`
}

type variable struct {
	Name  string          `json:"name"`
	Label string          `json:"label"`
	Type  string          `json:"type"`
	Hide  int             `json:"hide"`
	Query json.RawMessage `json:"query"`
}

// committed are the dashboards of the repository.
func committed(t *testing.T) []board {
	t.Helper()
	names, err := filepath.Glob("../../grafana-dashboards/dashboards/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := make([]board, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &all[i]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

var reference = regexp.MustCompile(`\$(\{[^}]+\}|\w+)`)

// shown reports whether a text of the page is one of the JSON, in which variables have no value yet.
func shown(text, template string) bool {
	var expr strings.Builder
	expr.WriteString("^")
	at := 0
	for _, m := range reference.FindAllStringIndex(template, -1) {
		expr.WriteString(regexp.QuoteMeta(template[at:m[0]]) + ".*")
		at = m[1]
	}
	expr.WriteString(regexp.QuoteMeta(template[at:]) + "$")
	return regexp.MustCompile(expr.String()).MatchString(text)
}
