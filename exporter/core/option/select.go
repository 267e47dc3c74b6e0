package option

// Select returns the type with this name. Without it the error is an *Error with the name that was probably meant, or all names.
func Select[T interface{ Name() string }](key, name string, types []T) (selected T, err error) {
	var names []string
	for _, t := range types {
		if t.Name() == name {
			return t, nil
		}
		names = append(names, t.Name())
	}
	if suggestion := Suggestion(name, names); suggestion != "" {
		return selected, Errorf(key, "is %q; %s", name, suggestion)
	}
	return selected, OneOf(key, name, names...)
}
