package voice

import "fmt"

// Model is a way to compute a Rating. The names are values of the label `model`.
type Model struct {
	// Name is "g107" or "simplified".
	Name string
	// Rate computes the rating.
	Rate func(Parameters) Rating
}

// Models lists all models. They are meant to be shown side by side: the thesis
// and much of the literature use the simplified one.
func Models() []Model {
	return []Model{{"g107", G107}, {"simplified", Simplified}}
}

// ModelByName finds a model. The error lists the names that exist.
func ModelByName(name string) (Model, error) {
	for _, m := range Models() {
		if m.Name == name {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("voice: unknown model %q; it must be g107 or simplified", name)
}
