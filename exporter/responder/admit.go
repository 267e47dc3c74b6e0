package responder

import (
	"cmp"
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

// DefaultTokenSessions is what a token may have at one time that has no limit of its own: one
// that runs, and one that is to follow.
const DefaultTokenSessions = 2

func mostSessions(l control.Limits) int { return cmp.Or(l.Sessions, DefaultTokenSessions) }

// admit counts a session in, if the token and the responder may have one more.
func (r *Responder) admit(t Token, gated *gatedConn) (*session, *control.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return nil, shuttingDown()
	}
	own := map[string]int{}
	for s := range r.sessions {
		own[s.token.Name]++
	}
	if n := own[t.Name]; n >= mostSessions(t.Limits) {
		return nil, &control.Refusal{Reason: control.TooMany, Detail: fmt.Sprintf("the token has %d sessions, which is all it may have", n), RetryAfter: tooManyWait}
	}
	if len(r.sessions) >= r.options.MaxSessions {
		surplus := r.surplus(own, own[t.Name]+1)
		if surplus == nil {
			return nil, &control.Refusal{Reason: control.TooMany, Detail: fmt.Sprintf("the responder has %d sessions, which is all it takes", len(r.sessions)), RetryAfter: tooManyWait}
		}
		r.counts.request(control.TooMany)
		delete(r.sessions, surplus)
		surplus.gated.reset()
	}
	s := &session{r: r, token: t, gated: gated, admitted: time.Now()}
	r.sessions[s] = struct{}{}
	r.running.Add(1) // closing is not set, so Run does not wait yet
	gated.authenticated()
	return s, nil
}

// surplus is the session that goes when all places are taken: the oldest that has not opened,
// of the token that has most, and more than so many; nil: there is none. The lock is held.
func (r *Responder) surplus(own map[string]int, above int) (found *session) {
	for s := range r.sessions {
		n := own[s.token.Name]
		if _, opened := s.busyFor(); opened || s.gated == nil || n <= above {
			continue
		}
		if found == nil || n > own[found.token.Name] || n == own[found.token.Name] && s.admitted.Before(found.admitted) {
			found = s
		}
	}
	return found
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

// take gives the link to the session, if it is free and its token's turn has come.
func (s *session) take() (release func(), refusal *control.Refusal) {
	links, link, now := s.r.env.Links, s.r.options.Link, time.Now()
	detail := "another token is to have the link next"
	if s.r.turns.next(s.token.Name, now) {
		free, ok := links.TryAcquire(link, "responder: "+s.token.Name)
		if ok {
			s.r.turns.begin(s.token.Name, now)
			return func() {
				end := time.Now()
				s.r.turns.end(s.token.Name, end, end.Sub(now))
				free()
			}, nil
		}
		detail = "another test uses the link"
		if _, since, ok := links.Holder(link); ok {
			detail += ", since " + since.Format(time.TimeOnly)
		}
	}
	again := s.r.freeIn()
	s.r.turns.wait(s.token.Name, now, again)
	return nil, &control.Refusal{Reason: control.Busy, Detail: detail, RetryAfter: again}
}

// unsaved refuses what could be forgotten.
func (s *session) unsaved(err error) *control.Refusal {
	s.r.env.Log.Debug("Session refused", "token", s.token.Name, "err", err) // that it begins, and ends, is logged by what saves
	return &control.Refusal{Reason: control.Unsaved, Detail: "what a day allows cannot be saved at the far end; its operator's log says why", RetryAfter: tooManyWait}
}

// mostWait bounds what a client is told to wait for the link: one that is told of the end
// of a long test would come late if that ended early.
const mostWait = 30 * time.Second

// freeIn guesses when the link is free: when the transfers of the session that has it are
// over, or soon, if it has none just now.
func (r *Responder) freeIn() time.Duration {
	const soon = 5 * time.Second
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.sessions {
		if busy, opened := s.busyFor(); opened {
			return min(max(soon, busy.Round(time.Second)), mostWait)
		}
	}
	return soon // a test of this host's own: it does not tell
}
