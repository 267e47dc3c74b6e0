package tstamp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/await"
)

// TestPacketReceivedDuringASendWakesReceive lets a socket send to itself: each packet arrives while the socket is not
// watched.
func TestPacketReceivedDuringASendWakesReceive(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		c := open(t, loopback(v6), Options{})
		c.wait, c.delay = time.Hour, time.Hour // no alarm wakes Receive
		arrived := make(chan string)
		go func() {
			for b := NewBatch(16, 64); c.Receive(b) == nil; {
				for i := range b.In {
					arrived <- string(b.In[i].Payload)
				}
			}
		}()
		for i := range 200 {
			want := string(rune('a' + i%26))
			_, err := c.Send([]Out{{Payload: []byte(want), Peer: c.LocalAddr()}})
			check(t, err)
			select {
			case got := <-arrived:
				if got != want {
					t.Fatalf("packet %d is %q, want %q", i, got, want)
				}
			case <-time.After(limit):
				t.Fatalf("Receive did not return packet %d", i)
			}
		}
	})
}

func TestWaitingReceiveReturnsTimestampsReadBySend(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{})
	local.wait = time.Hour
	got := make(chan TxStamp)
	go func() {
		for b := NewBatch(16, 64); local.Receive(b) == nil; {
			for _, s := range b.Tx {
				got <- s
			}
		}
	}()
	for i := range uint64(5) {
		_, err := local.Send([]Out{{Peer: remote.LocalAddr(), Cookie: i}})
		check(t, err)
		select {
		case s := <-got:
			if s.Cookie != i || s.Stamp.Origin != sample.Kernel {
				t.Errorf("timestamp %+v, want that of packet %d", s, i)
			}
		case <-time.After(limit):
			t.Fatalf("no timestamp of packet %d", i)
		}
	}
}

func TestManyTimestampsWakeAWaitingReceiveAtOnce(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{})
	local.wait, local.delay = time.Hour, time.Hour
	got := make(chan int)
	go func() {
		for b := NewBatch(16, 64); local.Receive(b) == nil; {
			got <- len(b.Tx)
		}
	}()
	await.That(t, "a Receive that waits", func() bool {
		local.pending.mu.Lock()
		defer local.pending.mu.Unlock()
		return local.pending.parked
	})
	out := make([]Out, stampsAtOnce)
	for i := range out {
		out[i].Peer = remote.LocalAddr()
	}
	_, err := local.Send(out)
	check(t, err)
	for all := 0; all < stampsAtOnce; {
		select {
		case n := <-got:
			all += n
		case <-time.After(limit):
			t.Fatalf("received %d of %d timestamps", all, stampsAtOnce)
		}
	}
}

// TestSocketIsReadableOnlyWhileItIsWatched polls the descriptor as the runtime's poller does.
func TestSocketIsReadableOnlyWhileItIsWatched(t *testing.T) {
	local, remote := open(t, loopback(false), Options{}), open(t, loopback(false), Options{})
	readable := func() (n int) {
		check(t, local.poll.raw.Control(func(ep uintptr) {
			n, _ = unix.Poll([]unix.PollFd{{Fd: int32(ep), Events: unix.POLLIN}}, 0)
		}))
		return n
	}
	local.drainMu.Lock() // Send leaves the timestamp on the error queue, as if Receive were reading it
	_, err := local.Send([]Out{{Peer: remote.LocalAddr()}})
	local.drainMu.Unlock()
	check(t, err)
	for _, want := range []int{1, 0, 1} {
		if want == 0 {
			local.poll.watch(false)
		} else {
			local.poll.watch(true)
		}
		if n := readable(); n != want {
			t.Errorf("%d descriptors are readable, want %d", n, want)
		}
	}
	collect(t, local, stamps(1))
	if n := readable(); n != 0 {
		t.Errorf("%d descriptors are readable after everything was read, want 0", n)
	}
}
