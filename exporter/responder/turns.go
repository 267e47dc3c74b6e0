package responder

import (
	"sync"
	"time"
)

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
