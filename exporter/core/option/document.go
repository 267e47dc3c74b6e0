package option

// Documented is a type of probes, outputs, watchers or clock sources whose options are described.
type Documented interface {
	// Document returns what the type does, in sentences, and its options, each with its default or an example.
	Document() (doc string, options []Described)
}
