package linklease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneway.example/exporter/core/metric"
	"oneway.example/exporter/probe/link"
	"oneway.example/exporter/probe/quota"
)

// timeout is the limit of waits that normally end at once.
const timeout = 30 * time.Second

func TestLinkIsLeasedAnnouncedAndSettled(t *testing.T) {
	l := newLessor(t, nil)
	one := l.dial("uplink")
	if got := one.Terms(); got.Labels != (Labels{"office", "train", "uplink"}) || got.Limit != 1000 || got.Left != 1000 || got.Holder != "" {
		t.Errorf("terms are %+v", got)
	}
	if !l.free("uplink") {
		t.Error("Dial took the link")
	}
	if err := one.Acquire(t.Context(), 0, nil); err != nil {
		t.Fatal(err)
	}
	if who, _, _ := l.links.Holder("uplink"); who != fmt.Sprintf("office/train (oneway test, process %d)", os.Getpid()) {
		t.Errorf("the link is held by %q", who)
	}
	if err := one.Reserve(600); err != nil {
		t.Fatal(err)
	}
	if one.Terms().Left != 400 || l.running("uplink") != 0 {
		t.Errorf("%+v, running %v", one.Terms(), l.running("uplink"))
	}
	one.BeginSending()
	l.eventually("the test is announced", func() bool { return l.running("uplink") == 1 })
	if err := one.Settle(300, 200); err != nil {
		t.Fatal(err)
	}
	if one.Terms().Left != 500 || l.running("uplink") != 0 || !l.free("uplink") {
		t.Errorf("%+v, running %v, free %v", one.Terms(), l.running("uplink"), l.free("uplink"))
	}
	l.wantUsed(500)
	for way, want := range map[string]float64{"forward": 300, "reverse": 200} {
		if v, _ := l.sink.Value(metric.RunBytes, "office", "train", way); v != want {
			t.Errorf("%v bytes %s, want %v", v, way, want)
		}
	}
}

func TestSecondTestOnALinkWaitsAndGetsTheHolder(t *testing.T) {
	l := newLessor(t, nil)
	first, second := l.take("uplink"), l.dial("uplink")
	waits, taken := make(chan Terms, 1), make(chan error, 1)
	go func() { taken <- second.Acquire(t.Context(), time.Hour, func(t Terms) { waits <- t }) }()
	if at := <-waits; !strings.HasPrefix(at.Holder, "office/train (oneway test") || at.Since.IsZero() {
		t.Errorf("the terms while waiting are %+v", at)
	}
	other := l.take("lab") // another link is free
	if err := other.Settle(0, 0); err != nil {
		t.Error(err)
	}
	select {
	case err := <-taken:
		t.Fatalf("two tests hold the link: %v", err)
	default:
	}
	if err := first.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	third := l.dial("uplink")
	var busy *link.BusyError
	if err := third.Acquire(t.Context(), 0, nil); !errors.As(err, &busy) || !strings.Contains(err.Error(), "link uplink was not free in 0s, it is held by office/train") {
		t.Errorf("error is %v", err)
	}
	if err := l.dial("uplink").Acquire(t.Context(), time.Millisecond, func(Terms) {}); !errors.As(err, &busy) {
		t.Errorf("error is %v", err)
	}
}

func TestReserveFailsAboveTheQuota(t *testing.T) {
	l := newLessor(t, nil)
	one := l.take("uplink")
	err := one.Reserve(1001)
	if missing, ok := errors.AsType[*quota.ExceededError](err); !ok || missing.Left != 1000 || missing.Need != 1001 || missing.Renewed.IsZero() {
		t.Fatalf("error is %v", err)
	}
	if err := one.Reserve(1000); err != nil {
		t.Errorf("reserve all that is left: %v", err)
	}
	if err := one.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
	l.wantUsed(0)
}

func TestReserveFailsIfTheQuotaCannotBeSaved(t *testing.T) {
	l := newLessor(t, nil)
	l.quota.SetFile(filepath.Join(os.DevNull, "links.json")) // no directory, and root cannot make one
	unsaved, ok := errors.AsType[*quota.UnsavedError](l.take("uplink").Reserve(1))
	if !ok || unsaved.Name != "uplink" {
		t.Fatalf("error is %v", unsaved)
	}
	if text := unsaved.Error(); strings.Count(text, "cannot be saved") != 1 || !strings.Contains(text, os.DevNull) {
		t.Errorf("the error is %q", text)
	}
	if err := l.take("lab").Reserve(1); err != nil {
		t.Errorf("a link without a quota: %v", err)
	}
}

func TestLostClientFreesTheLinkAndCountsItsReservation(t *testing.T) {
	l := newLessor(t, nil)
	one := l.take("uplink")
	if err := one.Reserve(400); err != nil {
		t.Fatal(err)
	}
	one.Close() // before BeginSending
	l.eventually("the link is free", func() bool { return l.free("uplink") })
	l.wantUsed(0)
	two := l.take("uplink")
	if err := two.Reserve(400); err != nil {
		t.Fatal(err)
	}
	two.BeginSending()
	l.eventually("it runs", func() bool { return l.running("uplink") == 1 })
	waiting := l.dial("uplink")
	logged, taken := make(chan Terms, 1), make(chan error, 1)
	go func() { taken <- waiting.Acquire(t.Context(), time.Hour, func(t Terms) { logged <- t }) }()
	<-logged
	two.Close()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if l.running("uplink") != 0 {
		t.Error("oneway_test_running is still 1 after the end of the client")
	}
	if one, again := l.links.Uses(), l.links.Uses(); len(one) != 1 || !maps.Equal(one, again) {
		t.Errorf("the link is still filled after the end of the client: %v, %v", one, again)
	}
	l.wantUsed(400)
}

func TestWaitingClientThatClosesIsRemoved(t *testing.T) {
	l := newLessor(t, nil)
	first, second := l.take("uplink"), l.dial("uplink")
	logged := make(chan Terms, 1)
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan error, 1)
	go func() { taken <- second.Acquire(ctx, time.Hour, func(t Terms) { logged <- t }) }()
	<-logged
	cancel()
	if err := <-taken; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	second.Close()
	if err := first.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
	l.eventually("the link is free", func() bool { return l.free("uplink") })
}

// A suspended test sends nothing, and its remote end times out.
func TestLeaseOfASuspendedTestTimesOut(t *testing.T) {
	l := newLessor(t, func(o *Options) { o.idleTimeout = 100 * time.Millisecond })
	one := l.take("uplink") // its next opKeepAlive comes in seconds
	select {
	case <-one.Lost():
	case <-time.After(timeout):
		t.Fatal("the lease did not time out")
	}
	l.eventually("the link is free", func() bool { return l.free("uplink") })
}

func TestRestartedServerKeepsReservationsAndLeasesAgain(t *testing.T) {
	l := newLessor(t, nil)
	one := l.take("uplink")
	if err := one.Reserve(400); err != nil {
		t.Fatal(err)
	}
	one.BeginSending()
	l.eventually("it runs", func() bool { return l.running("uplink") == 1 })
	l.stop()
	<-one.Lost()
	if err := one.Settle(100, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v", err)
	}
	l.wantUsed(400)
	if _, err := os.Stat(l.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket still exists: %v", err)
	}
	if _, err := Dial(t.Context(), l.socket, Test{}); !errors.As(err, new(*NoAgentError)) {
		t.Errorf("error is %v", err)
	}
	l.start()
	again := l.dial("uplink")
	if err := again.Reacquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.running("uplink") != 1 {
		t.Error("oneway_test_running is not 1 again")
	}
	if err := l.dial("uplink").Reacquire(t.Context()); !errors.As(err, new(*link.BusyError)) {
		t.Errorf("error is %v", err)
	}
	if err := again.Settle(100, 50); err != nil {
		t.Fatal(err)
	}
	l.wantUsed(400)
}

// A prober that a reload restarts resets the gauge that it shares with a test to 0.
func TestGaugeIsSetAgainAfterAReload(t *testing.T) {
	l := newLessor(t, nil)
	one := l.take("uplink")
	one.BeginSending()
	l.eventually("it runs", func() bool { return l.running("uplink") == 1 })
	reloaded := l.sink.Series(metric.TestRunning, "office", "train", "uplink")
	defer reloaded.Close()
	reloaded.Set(0)
	l.eventually("it is 1 again", func() bool { return l.running("uplink") == 1 })
	if err := one.Settle(0, 0); err != nil {
		t.Fatal(err)
	}
}

func TestSeriesOfATestStayForSeveralScrapes(t *testing.T) {
	l := newLessor(t, func(o *Options) { o.seriesRetention = time.Millisecond })
	if err := l.take("uplink").Settle(1, 1); err != nil {
		t.Fatal(err)
	}
	l.eventually("the series end", func() bool { return l.sink.Open() == 0 })
	if metric.TerminalRetention < 6*time.Minute {
		t.Errorf("the series stay for %v; a scrape a minute must see them", metric.TerminalRetention)
	}
}
