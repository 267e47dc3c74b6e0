package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"oneway.example/exporter/core/metric"
)

// once runs until its context ends, or fails at once.
type once struct {
	fails error
	runs  int
}

func (o *once) Run(ctx context.Context) error {
	o.runs++
	if o.fails == nil {
		<-ctx.Done()
	}
	return o.fails
}

// A plan makes the first runner; after each failure there is a new one, since the state of a failed one is unknown.
func TestTaskRunsThePreparedRunnerAndMakesAnotherAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*once
		k := &task{log: slog.New(slog.DiscardHandler), make: func(metric.Sink, *metric.Scopes, *slog.Logger) (runner, error) {
			o := &once{}
			if len(made) == 0 {
				o.fails = errors.New("no socket")
			}
			made = append(made, o)
			return o, nil
		}}
		if _, err := k.prepare(metric.Discard{}); err != nil || len(made) != 1 || made[0].runs != 0 {
			t.Fatalf("%d runners were made, %v", len(made), err)
		}
		k.unit = newUnit(k.logger, retry{first: time.Second, most: time.Minute}, k.runner(metric.Discard{}))
		k.unit.start(t.Context())
		synctest.Wait()
		k.mu.Lock() // as while a runner is made
		if got := k.fault(); got != "no socket" || len(made) != 1 || k.running() != made[0] {
			t.Errorf("fault is %q, %d runners were made", got, len(made))
		}
		k.mu.Unlock()
		time.Sleep(2 * time.Second) // simulated time (synctest): longer than the pause before the next runner
		synctest.Wait()
		if got := k.fault(); got != "" || len(made) != 2 || made[0].runs != 1 || made[1].runs != 1 || k.running() != made[1] {
			t.Errorf("fault is %q, %d runners were made", got, len(made))
		}
		if err := stopAll(nil, k); err != nil {
			t.Error(err)
		}
	})
}

// Secrets are passed to the running runner, and to those made after it.
func TestTaskAdoptsSecretsOnce(t *testing.T) {
	renewed := 0
	with := func(secret string) *task {
		return &task{
			key: "reflector", identity: 1, secrets: [][]byte{[]byte(secret)}, log: slog.New(slog.DiscardHandler),
			make: func(metric.Sink, *metric.Scopes, *slog.Logger) (runner, error) {
				return &once{fails: errors.New(secret)}, nil
			},
			renew: func(runner) error {
				if renewed++; secret == "bad" {
					panic("bad secret") // the agent goes on
				}
				return nil
			},
		}
	}
	k := with("old")
	if _, err := k.prepare(metric.Discard{}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"old", "bad", "new", "new"} {
		if later := with(secret); !k.same(later) {
			t.Fatal("other secrets made another task")
		} else {
			k.adopt(later)
		}
	}
	next, err := k.prepare(metric.Discard{})
	if err != nil || renewed != 2 || next.Run(t.Context()).Error() != "new" {
		t.Errorf("renewed %d times; %v", renewed, err)
	}
}
