package metric

import "sync"

// Scopes are the scopes of one run, which are closed at its end, even if it panics. The zero value has none.
type Scopes struct {
	mu  sync.Mutex
	all []*Scope
}

// Add adds a scope and returns it. On nil Scopes nothing closes it.
func (s *Scopes) Add(one *Scope) *Scope {
	if s == nil {
		return one
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, one)
	return one
}

// Close closes all scopes that have been added since the last call.
func (s *Scopes) Close() {
	s.mu.Lock()
	all := s.all
	s.all = nil
	s.mu.Unlock()
	for _, one := range all {
		one.Close()
	}
}
