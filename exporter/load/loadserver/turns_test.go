package loadserver

import (
	"testing"
	"time"
)

// queue is turns with their link, in simulated time.
type queue struct {
	turns
	now    time.Time
	holder string
	served map[string]int
}

func newQueue() *queue { return &queue{now: time.Unix(1_800_000_000, 0), served: map[string]int{}} }

// request does what session.take does.
func (q *queue) request(token string) bool {
	if q.next(token, q.now) && q.holder == "" {
		q.begin(token, q.now)
		q.holder = token
		q.served[token]++
		return true
	}
	q.wait(token, q.now, 5*time.Second)
	return false
}

func (q *queue) release(held time.Duration) {
	q.now = q.now.Add(held)
	q.end(q.holder, q.now, held)
	q.holder = ""
}

func TestTokenThatReopensAtOnceGetsOneTurnOfTwo(t *testing.T) {
	q := newQueue()
	waiting := time.Duration(0) // b returns after RetryAfter
	for range 100_000 {
		if q.holder != "" { // each holds the link for a step, and a returns at once
			q.release(10 * time.Millisecond)
		} else {
			q.now = q.now.Add(10 * time.Millisecond)
		}
		q.request("a")
		if waiting -= 10 * time.Millisecond; waiting <= 0 && !q.request("b") {
			waiting = 7 * time.Second
		}
	}
	a, b := q.served["a"], q.served["b"]
	t.Logf("a %d, b %d", a, b)
	if a > b+2 || b < 100 {
		t.Errorf("the token that retries at once got %d turns, the one that waits %d", a, b)
	}
}

func TestLongHoldIsChargedAsManyTurns(t *testing.T) {
	q := newQueue()
	if !q.request("a") || q.request("b") {
		t.Fatal("want a served, and b not")
	}
	for range 10 { // b retries after RetryAfter
		q.now = q.now.Add(30 * time.Second)
		q.request("b")
	}
	q.end("a", q.now, 5*time.Minute)
	q.holder = ""
	for i := range 6 {
		if q.request("a") {
			t.Fatalf("after 5 minutes a was served before b had %d turns", i)
		}
		if !q.request("b") {
			t.Fatalf("b was not served in turn %d", i)
		}
		q.release(time.Second)
	}
	if q.request("b") || !q.request("a") {
		t.Error("after 6 turns of each, a has waited longest and must be served")
	}
}

func TestLinkIsNotKeptForATokenThatDoesNotReturn(t *testing.T) {
	for told, waits := range map[time.Duration]time.Duration{5 * time.Second: 10500 * time.Millisecond, mostWait: 48 * time.Second} {
		q := newQueue()
		q.request("a")
		q.next("b", q.now)
		q.wait("b", q.now, told)
		gone := q.now.Add(waits)
		q.release(time.Second)
		q.now = gone.Add(-1)
		if q.request("c") {
			t.Errorf("c is served before the RetryAfter of b, %v", told)
		}
		q.now = gone
		if !q.request("c") {
			t.Errorf("c waits longer than %v for b with a RetryAfter of %v", waits, told)
		}
		q.request("b")
		q.request("d")
		q.release(time.Second)
		if q.request("b") || !q.request("d") {
			t.Error("b is served before d: it was not charged a turn for its expired place")
		}
		q.release(time.Second)
		if !q.request("b") {
			t.Error("b waits for more than one turn")
		}
	}
}

func TestIdleTokenSavesNoTurns(t *testing.T) {
	q := newQueue()
	q.request("b")
	q.release(time.Second)
	for range 50 {
		q.now = q.now.Add(time.Minute)
		q.request("a")
		q.release(time.Second)
	}
	q.served = map[string]int{}
	for range 1000 {
		q.now = q.now.Add(10 * time.Millisecond)
		for _, token := range []string{"b", "a"} {
			if q.request(token) {
				q.release(time.Millisecond)
			}
		}
	}
	if d := q.served["a"] - q.served["b"]; d < -2 || d > 2 {
		t.Errorf("served: %v", q.served)
	}
	q.now = q.now.Add(2 * turnsLifetime)
	q.request("c")
	if len(q.tokens) != 1 {
		t.Errorf("%d places are left", len(q.tokens))
	}
}
