package reflector

import (
	"testing"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/exporter/net/wire/stampfmt"
)

func TestFollowUpAndReceiptHaveTransmitTimestamps(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	if rep := k.poll(0); rep.follow.Mode != 0 || rep.follow.T3 != 0 || rep.receipt.EarlierTX != [3]stampfmt.ReplyTX{} {
		t.Errorf("the first reply reports an earlier one: %+v, %+v", rep.follow, rep.receipt.EarlierTX)
	} else {
		l.transmitted(rep.reply, 100)
	}
	l.transmitted(k.poll(1).reply, 101)
	missing := k.poll(2) // its timestamp arrives late
	l.transmitted(k.poll(3).reply, 103)
	rep := k.poll(4)
	if want := [3]stampfmt.ReplyTX{left(103), {}, left(101)}; rep.follow.Seq != 3 || rep.follow.Mode == 0 || rep.receipt.EarlierTX != want {
		t.Errorf("reply 4 has follow-up %d and %+v, want 3 and %+v", rep.follow.Seq, rep.receipt.EarlierTX, want)
	}
	l.transmitted(missing.reply, 102)
	rep = k.poll(5)
	if rep.follow.Mode != 0 {
		t.Errorf("reply 5 has a follow-up of reply 4, which has no timestamp: %+v", rep.follow)
	}
	if want := [3]stampfmt.ReplyTX{{}, left(103), left(102)}; rep.receipt.EarlierTX != want {
		t.Errorf("reply 5 has %+v, want %+v", rep.receipt.EarlierTX, want)
	}
	l.transmitted(rep.reply, 105)
	if q, want := k.statsQuery(6, true), [3]stampfmt.ReplyTX{left(105), {}, left(103)}; q.follow.Seq != 5 || q.receipt.EarlierTX != want {
		t.Errorf("the reply to the statistics query has follow-up %d and %+v, want 5 and %+v", q.follow.Seq, q.receipt.EarlierTX, want)
	}
}

// TestReceiptTellsThatStampsCome: behind a queue of this host, each timestamp comes too late for the replies that would report it.
func TestReceiptTellsThatStampsCome(t *testing.T) {
	l := newLab(t, nil)
	k := l.poller("192.0.2.1:5000", 1)
	var sent []pendingReply
	for seq := range uint32(30) {
		rep := k.poll(seq)
		if r := rep.receipt; r.TellsTX != (seq > 12) || r.EarlierTX != [3]stampfmt.ReplyTX{} {
			t.Fatalf("reply %d: it tells: %v, %+v", seq, r.TellsTX, r.EarlierTX)
		}
		if sent = append(sent, rep.reply); seq >= 12 {
			l.transmitted(sent[seq-12], 100)
		}
	}
}

// left is the Receipt's entry for a reply with transmitted's timestamp.
func left(after time.Duration) stampfmt.ReplyTX {
	return stampfmt.ReplyTX{Known: true, After: after, TXUncertainty: after % 32 * time.Microsecond}
}

// transmitted delivers the kernel's timestamp of a reply: at this time after its T3, with a TX uncertainty of some
// microseconds.
func (l *lab) transmitted(a pendingReply, after time.Duration) {
	if s := l.s.table.byCookie(a.cookie); s != nil {
		t3 := s.sent[a.number%sentSlots].t3
		s.stamped(uint32(a.cookie), sample.Stamp{At: t3.Add(after), Origin: sample.Kernel, TXUncertainty: after % 32 * time.Microsecond})
	}
}
