package control

import (
	"testing"
	"time"
)

func TestPatienceIsSilenceAfterTheLastOctet(t *testing.T) {
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	const s, idle = Silence, 5 * time.Second
	const rarer = idle/4 - PingEvery // so much later come pings under load
	for _, c := range []struct {
		name     string
		do       func(p *patience)
		want     time.Duration
		dripping bool
	}{
		{"nothing said", func(*patience) {}, s, false},
		{"heard", func(p *patience) { p.hear(at(time.Second)) }, time.Second + s, false},
		{"a transfer under way", func(p *patience) { p.begin(1, idle) }, s + idle + rarer, false},
		{"two transfers: the longer", func(p *patience) { p.begin(1, idle); p.begin(2, time.Second) }, s + idle + rarer, false},
		{"refused", func(p *patience) { p.begin(1, idle); p.drop(1) }, s, false},
		{"an end without a beginning", func(p *patience) { p.end(7, at(time.Second)) }, s, false},
		{"an Idle beyond the limit", func(p *patience) { p.begin(1, time.Hour) }, s + MaxIdle + maxPingEvery - PingEvery, false},
		{"ended, last heard before", func(p *patience) {
			p.begin(1, idle)
			p.hear(at(time.Second))
			p.end(1, at(3*time.Second))
		}, time.Second + idle + s, false},
		{"ended, heard long after", func(p *patience) {
			p.begin(1, idle)
			p.end(1, at(time.Second))
			p.hear(at(5 * time.Second))
		}, time.Second + idle + s, false},
		{"ended and the tail over", func(p *patience) {
			p.begin(1, idle)
			p.end(1, at(time.Second))
			p.hear(at(10 * time.Second))
		}, 10*time.Second + s, false},
		{"ended, and a question from before answered", func(p *patience) {
			p.begin(1, idle)
			before := p.ask()
			p.end(1, at(0))
			p.answer(before)
		}, idle + s, false},
		{"ended, and a question from after answered", func(p *patience) {
			p.begin(1, idle)
			p.ask()
			p.end(1, at(0))
			p.answer(p.ask())
		}, s, false},
		{"one ended, the next under way and shorter", func(p *patience) {
			p.begin(1, idle)
			p.end(1, at(0))
			p.begin(2, time.Second)
		}, idle + s, false},
		{"a frame under way", func(p *patience) {
			p.frame = at(time.Second)
			p.hear(at(time.Minute))
		}, time.Second + frameTime + s, true},
		{"a frame under way, and silence sooner", func(p *patience) { p.frame = at(0) }, s, false},
	} {
		p := newPatience(at(0))
		c.do(&p)
		if got, dripping := p.deadline(); !got.Equal(at(c.want)) || dripping != c.dripping {
			t.Errorf("%s: given up at %v (dripping %v), want %v (%v)", c.name, got.Sub(at(0)), dripping, c.want, c.dripping)
		}
	}
}

func TestPatienceAsksOnceAfterALoad(t *testing.T) {
	p := newPatience(time.Unix(0, 0))
	if p.wants() {
		t.Error("it wants to ask before any load")
	}
	p.begin(1, time.Second)
	p.end(1, time.Unix(1, 0))
	if !p.wants() {
		t.Error("it does not want to ask after a load")
	}
	seq := p.ask()
	if p.wants() {
		t.Error("it wants to ask twice")
	}
	if !p.answer(seq) || p.wants() {
		t.Error("it wants to ask after the answer")
	}
}

func TestPatienceTakesNoAnswerToNoQuestion(t *testing.T) {
	p := newPatience(time.Unix(0, 0))
	p.ask()
	p.ask()
	for _, c := range []struct {
		seq  uint64
		want bool
	}{{3, false}, {0, false}, {2, true}, {1, false}, {2, true}} {
		if got := p.answer(c.seq); got != c.want {
			t.Errorf("answer to %d: %v, want %v", c.seq, got, c.want)
		}
	}
}
