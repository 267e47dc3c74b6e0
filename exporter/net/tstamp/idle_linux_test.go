package tstamp

import (
	"testing"

	"oneway.example/tests/await"
)

func TestIdleMeansThatAllPacketsAreRead(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		local, c := open(t, loopback(v6), Options{}), open(t, loopback(v6), Options{})
		send := func() {
			t.Helper()
			if _, err := local.Send([]Out{{Payload: []byte("request"), Peer: c.LocalAddr()}}); err != nil {
				t.Fatal(err)
			}
		}
		received, next := make(chan struct{}), make(chan struct{})
		go func() {
			for b := NewBatch(16, 2048); c.Receive(b) == nil; <-next {
				received <- struct{}{}
			}
		}()
		await.That(t, "the receiver waits", c.Idle)
		send()
		<-received
		if c.Idle() {
			t.Error("idle while a packet is processed")
		}
		send()
		if c.Idle() {
			t.Error("idle while a packet is unread")
		}
		next <- struct{}{}
		<-received
		next <- struct{}{}
		await.That(t, "the receiver waits again", c.Idle)
	})
}

// TestUnreadEmptyPacketIsNotIdle: an empty packet, which anyone can send, waits before the others.
func TestUnreadEmptyPacketIsNotIdle(t *testing.T) {
	families(t, func(t *testing.T, v6 bool) {
		local, c := open(t, loopback(v6), Options{}), open(t, loopback(v6), Options{})
		go func() {
			for b := NewBatch(16, 2048); c.Receive(b) == nil; {
			}
		}()
		await.That(t, "the receiver waits", c.Idle)
		c.poll.watch(false) // the receiver is not woken: its host is busy
		if _, err := local.Send([]Out{{Payload: []byte{}, Peer: c.LocalAddr()}, {Payload: []byte("reply"), Peer: c.LocalAddr()}}); err != nil {
			t.Fatal(err)
		}
		if c.Idle() {
			t.Error("idle while an empty packet and another one are unread")
		}
	})
}
