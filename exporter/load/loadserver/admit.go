package loadserver

import (
	"cmp"
	"fmt"
	"net/http"
	"sync"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/core/unit"
	"oneway.example/exporter/load/loadcontrol"
)

// serve handles a request for a session: it authorizes and admits it, and runs the session until
// the end of its connection.
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
	defer r.removeSession(s)
	ctx := req.Context()
	conn, err := loadcontrol.Accept(w, req)
	if err != nil {
		r.counts.request(loadcontrol.BadRequest)
		r.env.Log.Debug("Request is no session", "from", req.RemoteAddr, "token", token.Name, "err", err)
		return
	}
	// After the upgrade the request's context ends only with the server's: net/http no longer manages
	// the connection.
	s.serve(ctx, conn)
}

// authorize returns the token of a request. A client certificate counts if a token names it.
func (r *LoadServer) authorize(req *http.Request) (Token, *loadcontrol.Refusal) {
	if text, ok := loadcontrol.BearerToken(req); ok {
		if t, known := byText(r.tokens.current(), text); known {
			return t, nil
		}
		return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: "the token is not in the tokens file; \"oneway token new\" there makes another"}
	}
	if req.TLS != nil && len(req.TLS.VerifiedChains) > 0 {
		name := req.TLS.VerifiedChains[0][0].Subject.CommonName
		if t, known := r.tokens.named(name); known && t.Certificate {
			return t, nil
		}
		return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: fmt.Sprintf("the certificate of %.64q has no token: the tokens file needs the line \"NAME certificate\" with this name", name)}
	}
	if r.clientCAs == nil {
		return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: "a token is required: without client_ca_file this load server accepts no client certificate"}
	}
	return Token{}, &loadcontrol.Refusal{Reason: loadcontrol.Unauthorized, Detail: "a token or a client certificate is required"}
}

// tooManyWait is RetryAfter where sessions, their time or ports are at a limit.
const tooManyWait = 10 * time.Second

// DefaultTokenSessions is the default limit of a token's sessions: one that runs, and one that
// waits.
const DefaultTokenSessions = 2

func maxSessions(l loadcontrol.Limits) int { return cmp.Or(l.Sessions, DefaultTokenSessions) }

// admit adds a session, within the limits of the token and the load server.
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
	if n := own[t.Name]; n >= maxSessions(t.Limits) {
		return nil, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: "the token has " + unit.Counted(n, "session", "sessions") + ", its limit: wait for the others, or let the operator of the load server raise sessions= of this token in its tokens_file", RetryAfter: tooManyWait}
	}
	if len(r.sessions) >= r.options.MaxSessions {
		replaceable := r.replaceable(own, own[t.Name]+1)
		if replaceable == nil {
			return nil, &loadcontrol.Refusal{Reason: loadcontrol.TooMany, Detail: "the load server has " + unit.Counted(len(r.sessions), "session", "sessions") + ", its limit", RetryAfter: tooManyWait}
		}
		r.counts.request(loadcontrol.TooMany)
		delete(r.sessions, replaceable)
		reset(replaceable.gated.TCPConn)
	}
	s := &session{r: r, token: t, gated: gated, admitted: time.Now()}
	r.sessions[s] = struct{}{}
	r.running.Add(1) // closing is not set, so Run does not wait yet
	gated.authenticated()
	return s, nil
}

// replaceable returns the session to end if the load server is full: the oldest that is not open, of the
// token with the most sessions, if that has more than above; nil: there is none. mu must be held.
func (r *LoadServer) replaceable(own map[string]int, above int) (found *session) {
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

// removeSession removes a session.
func (r *LoadServer) removeSession(s *session) {
	r.mu.Lock()
	delete(r.sessions, s)
	r.mu.Unlock()
	r.running.Done()
}

// shuttingDown is the refusal at the end of Run; another load server may start soon.
func shuttingDown() *loadcontrol.Refusal {
	return &loadcontrol.Refusal{Reason: loadcontrol.ShuttingDown, Detail: "the load server stops or restarts", RetryAfter: 5 * time.Second}
}

// take acquires the link for the session, if the link is free and it is its token's turn.
func (s *session) take() (release func(), refusal *loadcontrol.Refusal) {
	links, link, now := s.r.env.Links, s.r.options.Link, time.Now()
	detail := "another token is next to use the link"
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

// unsaved refuses a session whose usage cannot be saved.
func (s *session) unsaved(err error) *loadcontrol.Refusal {
	s.r.env.Log.Debug("Session refused", "token", s.token.Name, "err", err) // the usage store logs the first and the last failure
	return &loadcontrol.Refusal{Reason: loadcontrol.Unsaved, Detail: "the load server cannot save the usage of the day; its log has the cause", RetryAfter: metric.QuotaSaveInterval}
}

// mostWait is the longest RetryAfter of a busy link: after a longer one a client could come long
// after a session that ended early.
const mostWait = 30 * time.Second

// freeIn estimates when the link is free: at the planned end of the transfers of the session that
// holds it, or soon if none runs.
func (r *LoadServer) freeIn() time.Duration {
	const soon = 5 * time.Second
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.sessions {
		if busy, opened := s.busyFor(); opened {
			return min(max(soon, busy.Round(time.Second)), mostWait)
		}
	}
	return soon // a test of this host, whose end is unknown
}

// Times of the turns.
const (
	// turnTime is the time of holding the link that is charged as one turn.
	turnTime = time.Minute
	// keepTime is how long the link is kept for a token that has just used it and that others
	// owe a turn.
	keepTime = 3 * time.Second
	// returnMargin is added to 1.5 times RetryAfter for a client to return.
	returnMargin = 3 * time.Second
	// turnsLifetime is the time without requests after which a token's turns are deleted.
	turnsLifetime = time.Hour
)

// turns decide which token is next to use the link. Each token has a count of turns: one for each
// session, and one more for each further minute that the session held the link. Of the tokens that
// wait, the one with the fewest turns is next, and among equal ones the one that has waited longest.
// So a token that opens sessions repeatedly, or holds the link for long, gets no more of it than each
// other that waits.
//
// The link is kept for a token with RetryAfter until it should have returned; if it does not return, it is charged a
// turn.
type turns struct {
	mu     sync.Mutex
	tokens map[string]*tokenTurns
	now    int // turns of the token served last; a new token begins with as many
	inUse  bool
	freed  time.Time // end of the last use
}

// tokenTurns is the state of a token.
type tokenTurns struct {
	turns    int
	since    time.Time // begin of the wait
	until    time.Time // the link is kept for it until then
	expected bool      // it has a RetryAfter and has not returned
}

// next returns whether it is the token's turn.
func (q *turns) next(token string, at time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expire(at)
	own := q.token(token, at)
	for name, other := range q.tokens {
		if name != token && at.Before(other.until) &&
			(other.turns < own.turns || other.turns == own.turns && other.since.Before(own.since)) {
			return false
		}
	}
	return true
}

// wait keeps the link for a token that gets RetryAfter after.
func (q *turns) wait(token string, at time.Time, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.token(token, at)
	p.until, p.expected = at.Add(after+after/2+returnMargin), true
}

// begin records the begin of the token's turn.
func (q *turns) begin(token string, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.token(token, at)
	q.now, q.inUse = p.turns, true
	p.turns++
	p.until, p.expected = at, false
}

// end records the end of the turn, after the link was held for held.
func (q *turns) end(token string, at time.Time, held time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inUse, q.freed = false, at
	p := q.token(token, at)
	p.turns += int(held / turnTime)
	p.since = at
	if kept := at.Add(keepTime); p.until.Before(kept) {
		p.until = kept
	}
}

// token returns the token's state and creates it if necessary; mu must be held.
func (q *turns) token(token string, at time.Time) *tokenTurns {
	p := q.tokens[token]
	if p == nil {
		p = &tokenTurns{since: at, until: at}
		if q.tokens == nil {
			q.tokens = map[string]*tokenTurns{}
		}
		q.tokens[token] = p
	}
	if !at.Before(p.until) && !p.expected { // a new wait
		p.turns, p.since = max(p.turns, q.now), at
	}
	return p
}

// expire charges the tokens that did not return in time, and deletes old states; mu must be held.
func (q *turns) expire(at time.Time) {
	for name, p := range q.tokens {
		if at.Before(p.until) {
			continue
		}
		if p.expected && !q.inUse && p.until.After(q.freed) {
			p.turns++
		}
		p.expected = false
		if at.Sub(p.until) > turnsLifetime {
			delete(q.tokens, name)
		}
	}
}
