package loadsession

// ReadToken is readToken.
func ReadToken(file string) (string, error) { return readToken(file) }
