package heavy

// Failure is an error with the word that metric.Runs counts it under.
type Failure struct {
	// Reason is one of the Reason constants.
	Reason string
	Err    error
}

// Error is that of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Err }
