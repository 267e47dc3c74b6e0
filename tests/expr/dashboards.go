package expr

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// board is the part of a dashboard's JSON with expressions.
type board struct {
	Panels      []panel `json:"panels"`
	Annotations struct {
		List []struct {
			Name string `json:"name"`
			Expr string `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []struct {
			Name       string          `json:"name"`
			Datasource json.RawMessage `json:"datasource"`
			// Query is an object for a query of a datasource, else text.
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

// panel is a panel or a row; a collapsed row contains its panels.
type panel struct {
	Title   string  `json:"title"`
	Panels  []panel `json:"panels"`
	Targets []struct {
		RefID   string `json:"refId"`
		Expr    string `json:"expr"`
		Instant bool   `json:"instant"`
		// Query is InfluxQL, ResultFormat "table" or "time_series".
		Query        string `json:"query"`
		ResultFormat string `json:"resultFormat"`
	} `json:"targets"`
}

// readBoard reads a dashboard; the panels of collapsed rows are among its panels.
func readBoard(name string) (b board, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return b, fmt.Errorf("expr: %w", err)
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("expr: %s: %w", name, err)
	}
	b.Panels = flat(b.Panels)
	return b, nil
}

func flat(ps []panel) (out []panel) {
	for _, p := range ps {
		out = append(append(out, flat(p.Panels)...), p)
	}
	return out
}

func dashboard(name string, vars variables) ([]Expr, error) {
	b, err := readBoard(name)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(name)
	out, err := panels(base, b.Panels, vars)
	if err != nil {
		return nil, err
	}
	for _, a := range b.Annotations.List {
		if a.Expr == "" {
			continue
		}
		query, err := vars.fill(a.Expr)
		if err != nil {
			return nil, err
		}
		out = append(out, Expr{
			Source: base + ": annotation " + a.Name, Query: query,
			MayBeEmpty: "annotations mark events, of which there may be none",
		})
	}
	return out, nil
}

func panels(base string, ps []panel, vars variables) ([]Expr, error) {
	var out []Expr
	for _, p := range ps {
		for _, t := range p.Targets {
			if t.Expr == "" && t.Query != "" {
				continue // InfluxQL; see Statements
			}
			query, err := vars.fill(t.Expr)
			if err != nil {
				return nil, err
			}
			out = append(out, Expr{Source: base + ": " + p.Title + " " + t.RefID, Query: query, Instant: t.Instant})
		}
	}
	return out, nil
}
