package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"oneway.example/tests/await"
	"oneway.example/tests/freeport"
)

func TestSignalIsTheCauseOfTheEnd(t *testing.T) {
	for _, number := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cause := ""
		if err := interruptible(func(ctx context.Context) error {
			if err := syscall.Kill(os.Getpid(), number); err != nil {
				return err
			}
			<-ctx.Done()
			cause = context.Cause(ctx).Error()
			return nil
		})(nil); err != nil {
			t.Fatal(err)
		}
		if want := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}[number]; cause != want {
			t.Errorf("the cause is %q, want %q", cause, want)
		}
	}
}

// TestRequestDeliveredTwiceIsOneSignal: `timeout -s INT` signals the program, and then its process group. Otherwise the second one
// would end this test.
func TestRequestDeliveredTwiceIsOneSignal(t *testing.T) {
	if err := interruptible(func(ctx context.Context) error {
		for range 2 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				return err
			}
			<-ctx.Done()
		}
		time.Sleep(oneSignal / 10) // the second one is delivered meanwhile; that it has no effect has no event to wait for
		return nil
	})(nil); err != nil {
		t.Fatal(err)
	}
}

// TestStartAndEndAreLogged: a line each for the start, the signal and the end.
func TestStartAndEndAreLogged(t *testing.T) {
	at, reflector := freeport.Address(t), freeport.Address(t)
	var said await.Text
	f := &agentFlags{
		classic: true, native: true,
		config: write(t, fmt.Sprintf("clock: {source: none}\nreflector: {listen: [%q]}\n", reflector)),
		web:    &web.FlagConfig{WebListenAddresses: &[]string{at}, WebSystemdSocket: new(bool), WebConfigFile: new(string)},
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.run(ctx, slog.New(slog.NewTextHandler(&said, nil))) }()
	waitFor(t, "http://"+at+"/-/ready", func(string) bool { return true })
	cancel(signaled{syscall.SIGTERM})
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"msg=Measuring version=", fmt.Sprintf(`config_file=%s paths=0 probes=0 watchers=0 addresses="http %s, reflector %s"`, f.config, at, reflector),
		"msg=Ending signal=SIGTERM\n", "msg=Ended ran_seconds=",
	} {
		if strings.Count(said.String(), want) != 1 {
			t.Errorf("want one %q in\n%s", want, said.String())
		}
	}
}
