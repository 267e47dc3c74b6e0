package stamp

import "time"

// numbered tells from the numbers of a foreign reflector's own answers how many questions had
// reached it. The question that got answer n was the (n - first + 1)th one that it received;
// those before it that come later have overtaken nobody: they get higher numbers.
type numbered struct {
	// newest is the question with the highest number of those answered in order, settling one
	// that is looked at once the waiting time is over.
	newest, settling answered
	// again are further answers to a question that was answered before: it was duplicated.
	again uint64
	// begin is the first question of the reflector's present life; before counts first answers to the
	// questions before it.
	begin, before uint64
}

// answered is a question and the number of its answer.
type answered struct {
	seq, n uint64
	at     time.Duration
	known  bool
	// behind are questions before it that were answered after it.
	behind uint64
}

// add takes the first answer to question seq, numbered n.
func (a *numbered) add(seq, n uint64, now time.Duration) {
	if seq < a.begin {
		a.again++ // it is booked already
		return
	}
	for _, p := range [...]*answered{&a.newest, &a.settling} {
		if p.known && seq < p.seq && n > p.n {
			p.behind++
		}
	}
	if p := &a.newest; !p.known || seq > p.seq && n > p.n {
		*p = answered{seq: seq, n: n, at: now, known: true}
	}
}

// settle says up to which question it is known whether they were received, and how many from begin on
// were not; zero: of none. The reflector's numbers begin with first.
func (a *numbered) settle(first uint64, now, wait time.Duration) (decided, missing uint64) {
	p := &a.settling
	if !p.known || now-p.at <= wait {
		if !p.known {
			*p = a.newest
		}
		return 0, 0
	}
	decided = p.seq + 1
	received := p.n + 1 + p.behind - min(p.n+1+p.behind, first+a.again)
	*p = answered{}
	return decided, decided - a.begin - min(decided-a.begin, received)
}
