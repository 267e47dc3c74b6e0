package loadserver

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	"oneway.example/exporter/loadcontrol"
)

// serve takes a request for a session: it is authorized, admitted, and then lives for as
// long as its connection.
func (r *LoadServer) serve(w http.ResponseWriter, req *http.Request) {
	token, refusal := r.authorize(req)
	var s *session
	if refusal == nil {
		s, refusal = r.admit(token, req.Context().Value(connKey{}).(*gatedConn))
	}
	if refusal != nil {
		r.counts.request(refusal.Reason)
		r.env.Log.Debug("Request refused", "from", req.RemoteAddr, "token", token.Name, "reason", string(refusal.Reason))
		loadcontrol.Refuse(w, refusal)
		return
	}
	defer r.dismiss(s)
	ctx := req.Context()
	conn, err := loadcontrol.Accept(w, req)
	if err != nil {
		r.counts.request(loadcontrol.BadRequest)
		r.env.Log.Debug("Request is no session", "from", req.RemoteAddr, "token", token.Name, "err", err)
		return
	}
	// The request's context ends with the server's, and with nothing else from here on: the
	// connection is no longer HTTP's.
	s.serve(ctx, conn)
}

// authorize finds whose request it is. A certificate counts where it names a token.
func (r *LoadServer) authorize(req *http.Request) (Token, *loadcontrol.Refusal) {
	if text, ok := loadcontrol.BearerToken(req); ok {
		if t, known := byText(r.tokens.current(), text); known {
			return t, nil
		}
		return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: "this token is not known here, or no longer"}
	}
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		name := req.TLS.VerifiedChains[0][0].Subject.CommonName
		if t, known := r.tokens.named(name); known && t.Certificate {
			return t, nil
		}
		return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: fmt.Sprintf("the certificate of %.64q is not known here", name)}
	}
	return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: "a token or a client certificate is needed"}
}

// tooManyWait is when to come back where others must go first.
const tooManyWait = 10 * time.Second

// DefaultTokenSessions is what a token may have at one time that has no limit of its own: one
// that runs, and one that is to follow.
const DefaultTokenSessions = 2

func mostSessions(l loadcontrol.Limits) int { return cmp.Or(l.Sessions, DefaultTokenSessions) }

// admit counts a session in, if the token and the load server may have one more.
func (r *LoadServer) admit(t Token, gated *gatedConn) (*session, *loadcontrol.Refusal) {
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
		return nil, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: fmt.Sprintf("the token has %d sessions, which is all it may have", n), RetryAfter: tooManyWait}
	}
	if len(r.sessions) >= r.options.MaxSessions {
		surplus := r.surplus(own, own[t.Name]+1)
		if surplus == nil {
			return nil, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: fmt.Sprintf("the load server has %d sessions, which is all it takes", len(r.sessions)), RetryAfter: tooManyWait}
		}
		r.counts.request(loadcontrol.TooMany)
		delete(r.sessions, surplus)
		reset(surplus.gated.TCPConn)
	}
	s := &session{r: r, token: t, gated: gated, admitted: time.Now()}
	r.sessions[s] = struct{}{}
	r.running.Add(1) // closing is not set, so Run does not wait yet
	gated.authenticated()
	return s, nil
}

// surplus is the session that goes when all places are taken: the oldest that has not opened,
// of the token that has most, and more than so many; nil: there is none. The lock is held.
func (r *LoadServer) surplus(own map[string]int, above int) (found *session) {
	for s := range r.sessions {
		n := own[s.token.Name]
		if _, opened := s.busyFor(); opened || n <= above {
			continue
		}
		if found == nil || n > own[found.token.Name] || n == own[found.token.Name] && s.admitted.Before(found.admitted) {
			found = s
		}
	}
	return found
}

// dismiss counts it out.
func (r *LoadServer) dismiss(s *session) {
	r.mu.Lock()
	delete(r.sessions, s)
	r.mu.Unlock()
	r.running.Done()
}

// shuttingDown says that another load server may run in a moment.
func shuttingDown() *loadcontrol.Refusal {
	return &loadcontrol.Refusal{Reason: loadcontrol.ShuttingDown, Detail: "the load server ends, or begins anew", RetryAfter: 5 * time.Second}
}

// take gives the link to the session, if it is free and its token's turn has come.
func (s *session) take() (release func(), refusal *loadcontrol.Refusal) {
	links, link, now := s.r.env.Links, s.r.options.Link, time.Now()
	detail := "another token is to have the link next"
	if s.r.turns.next(s.token.Name, now) {
		free, ok := links.TryAcquire(link, "loadserver: "+s.token.Name)
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
	return nil, &loadcontrol.Refusal{Reason: loadcontrol.Busy, Detail: detail, RetryAfter: again}
}

// unsaved refuses what could be forgotten.
func (s *session) unsaved(err error) *loadcontrol.Refusal {
	s.r.env.Log.Debug("Session refused", "token", s.token.Name, "err", err) // that it begins, and ends, is logged by what saves
	return &loadcontrol.Refusal{Reason: loadcontrol.Unsaved, Detail: "what a day allows cannot be saved at the remote end; its operator's log says why", RetryAfter: tooManyWait}
}

// mostWait bounds what a client is told to wait for the link: one that is told of the end
// of a long test would come late if that ended early.
const mostWait = 30 * time.Second

// freeIn guesses when the link is free: when the transfers of the session that has it are
// over, or soon, if it has none just now.
func (r *LoadServer) freeIn() time.Duration {
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

// Times of turns.
const (
	// turnTime of holding the link is charged as one turn, and so is each part of it.
	turnTime = time.Minute
	// placeKept is how long the link waits for a token that has just used it and that others
	// owe a turn.
	placeKept = 3 * time.Second
	// placeMargin is what a client may take, beside RetryAfter and half as long, to be back.
	placeMargin = 3 * time.Second
	// forgotten is after how long a token that has not asked owes nothing any more.
	forgotten = time.Hour
)

// turns say which token is next to have the link. Each token counts the turns that it was
// given: one for a session, and one more for each further minute that the session held the
// link. Of those that ask, the one with the fewest is next, and of those with as many the
// one that has waited longest: who opens again and again, or holds the link for long, has
// it no more often, and no longer, than each of the others that want it.
//
// Who was told to come back has a place until he should be back. The link waits for him
// so long; to have it wait in vain costs a turn.
type turns struct {
	mu     sync.Mutex
	places map[string]*place
	now    int // turns of the one served last: who is new begins there, and has saved up none
	held   bool
	freed  time.Time // when it was held last
}

// place is what is known of a token.
type place struct {
	turns int
	since time.Time // when it began to wait
	until time.Time // when the link waits for it no more
	asked bool      // it was told to come back, and has not come yet
}

// next tells whether it is the token's turn.
func (q *turns) next(token string, at time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expire(at)
	own := q.place(token, at)
	for name, other := range q.places {
		if name != token && at.Before(other.until) &&
			(other.turns < own.turns || other.turns == own.turns && other.since.Before(own.since)) {
			return false
		}
	}
	return true
}

// wait keeps a place for a token that is told to come back after a while.
func (q *turns) wait(token string, at time.Time, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.place(token, at)
	p.until, p.asked = at.Add(after+after/2+placeMargin), true
}

// begin says that the token's turn has begun.
func (q *turns) begin(token string, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.place(token, at)
	q.now, q.held = p.turns, true
	p.turns++
	p.until, p.asked = at, false
}

// end says that it is over, after the link was held for so long.
func (q *turns) end(token string, at time.Time, held time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held, q.freed = false, at
	p := q.place(token, at)
	p.turns += int(held / turnTime)
	p.since = at
	if kept := at.Add(placeKept); p.until.Before(kept) {
		p.until = kept
	}
}

// place is the token's, made anew if it has none; mu is held.
func (q *turns) place(token string, at time.Time) *place {
	p := q.places[token]
	if p == nil {
		p = &place{since: at, until: at}
		if q.places == nil {
			q.places = map[string]*place{}
		}
		q.places[token] = p
	}
	if !at.Before(p.until) && !p.asked { // it comes anew
		p.turns, p.since = max(p.turns, q.now), at
	}
	return p
}

// expire charges those who have let the link wait, and forgets who was long away; mu is
// held.
func (q *turns) expire(at time.Time) {
	for name, p := range q.places {
		if at.Before(p.until) {
			continue
		}
		if p.asked && !q.held && p.until.After(q.freed) {
			p.turns++
		}
		p.asked = false
		if at.Sub(p.until) > forgotten {
			delete(q.places, name)
		}
	}
}
