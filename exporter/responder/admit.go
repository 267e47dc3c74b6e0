package responder

import (
	"fmt"
	"net/http"
	"time"

	"oneway.example/exporter/control"
)

// notLetIn counts a connection that the gate has closed.
func (r *Responder) notLetIn(unwelcome bool) {
	if unwelcome {
		r.counts.request(control.Unauthorised)
		return
	}
	r.counts.request(control.TooMany)
}

// serve takes a request for a session: it is authorised, admitted, and then lives for as
// long as its connection.
func (r *Responder) serve(w http.ResponseWriter, req *http.Request) {
	token, refusal := r.authorise(req)
	var s *session
	if refusal == nil {
		s, refusal = r.admit(token, gatedOf(req.Context()))
	}
	if refusal != nil {
		r.counts.request(refusal.Reason)
		r.env.Log.Debug("Request refused", "from", req.RemoteAddr, "token", token.Name, "reason", string(refusal.Reason))
		control.Refuse(w, refusal)
		return
	}
	defer r.dismiss(s)
	ctx := req.Context()
	conn, err := control.Accept(w, req)
	if err != nil {
		r.counts.request(control.BadRequest)
		r.env.Log.Debug("Request is no session", "from", req.RemoteAddr, "token", token.Name, "err", err)
		return
	}
	// The request's context ends with the server's, and with nothing else from here on: the
	// connection is no longer HTTP's.
	s.serve(ctx, conn)
}

// authorise finds whose request it is. A certificate counts where it names a token.
func (r *Responder) authorise(req *http.Request) (Token, *control.Refusal) {
	all := r.tokens.current()
	if text, ok := control.BearerToken(req); ok {
		if t, known := byText(all, text); known {
			return t, nil
		}
		return Token{}, &control.Refusal{Reason: control.Unauthorised, Detail: "this token is not known here, or no longer"}
	}
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		name := req.TLS.VerifiedChains[0][0].Subject.CommonName
		for _, t := range all {
			if t.Certificate && t.Name == name {
				return t, nil
			}
		}
		return Token{}, &control.Refusal{Reason: control.Unauthorised, Detail: fmt.Sprintf("the certificate of %.64q is not known here", name)}
	}
	return Token{}, &control.Refusal{Reason: control.Unauthorised, Detail: "a token or a client certificate is needed"}
}

// tooManyWait is when to come back where others must go first.
const tooManyWait = 10 * time.Second

// admit counts a session in, if the token and the responder may have one more.
func (r *Responder) admit(t Token, gated *gatedConn) (*session, *control.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, shuttingDown()
	}
	own := 0
	for s := range r.sessions {
		if s.token.Name == t.Name {
			own++
		}
	}
	switch most := t.Limits.Sessions; {
	case most > 0 && own >= most:
		return nil, &control.Refusal{Reason: control.TooMany, Detail: fmt.Sprintf("the token has %d sessions, which is all it may have", own), RetryAfter: tooManyWait}
	case len(r.sessions) >= r.options.MaxSessions:
		return nil, &control.Refusal{Reason: control.TooMany, Detail: fmt.Sprintf("the responder has %d sessions, which is all it takes", len(r.sessions)), RetryAfter: tooManyWait}
	}
	s := &session{r: r, token: t, gated: gated}
	r.sessions[s] = struct{}{}
	r.running.Add(1) // closing is not set, so Run does not wait yet
	gated.authenticated()
	return s, nil
}

// dismiss counts it out.
func (r *Responder) dismiss(s *session) {
	r.mu.Lock()
	delete(r.sessions, s)
	r.mu.Unlock()
	r.running.Done()
}

// shuttingDown says that another responder may run in a moment.
func shuttingDown() *control.Refusal {
	return &control.Refusal{Reason: control.ShuttingDown, Detail: "the responder ends, or begins anew", RetryAfter: 5 * time.Second}
}

// unsaved refuses what could be forgotten.
func (s *session) unsaved(err error) *control.Refusal {
	s.r.env.Log.Debug("Session refused", "token", s.token.Name, "err", err) // that it begins, and ends, is logged by what saves
	return &control.Refusal{Reason: control.Unsaved, Detail: "what a day allows cannot be saved at the far end; its operator's log says why", RetryAfter: tooManyWait}
}

// freeIn guesses when the link is free: when the transfers of the session that has it are
// over, or soon, if it has none just now.
func (r *Responder) freeIn() time.Duration {
	const soon = 5 * time.Second
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.sessions {
		if busy, opened := s.busyFor(); opened {
			return max(soon, busy.Round(time.Second))
		}
	}
	return soon // a test of this host's own: it does not tell
}
