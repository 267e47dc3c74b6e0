package helper

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the program of the tests, and an agent that is killed, if this variable says so.
const role = "ONEWAY_HELPER_ROLE"

// groupOfAgent is the variable with the delegated control group of that agent, whose child then leaves the process group.
const groupOfAgent = "ONEWAY_HELPER_CGROUP"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "serve":
		Serve("test", "1.2.3", handlers())
	case "silent":
		time.Sleep(time.Hour) // until it is killed
	case "exit":
		os.Exit(3)
	case "older", "newer":
		protocol := map[string]int{"older": Protocol - 1, "newer": Protocol + 1}[os.Getenv(role)]
		fmt.Printf("{\"hello\":{\"protocol\":%d,\"name\":\"test\",\"version\":\"9\"}}\n", protocol)
		time.Sleep(time.Hour) // until it is killed
	case "no hello":
		fmt.Println(`{"id":1}`)
		time.Sleep(time.Hour) // until it is killed
	case "agent":
		actAsAgent()
	}
}

// actAsAgent runs a helper with a child, prints the numbers of both, and waits until it is killed.
func actAsAgent() {
	group := os.Getenv(groupOfAgent)
	h, err := New(Options{Program: "/proc/self/exe", Environment: []string{role + "=serve"}, Cgroup: group})
	var pids []int
	if err == nil {
		err = h.Call(context.Background(), "child", group != "", &pids)
	}
	text, _ := json.Marshal(pids)
	fmt.Println(string(text), err)
	time.Sleep(time.Hour) // until it is killed
}

// printed writes to the pipe of the agent, beside the messages of Serve.
func printed(text string) Handler {
	return func(context.Context, json.RawMessage) (any, error) {
		_, err := os.Stdout.WriteString(text)
		return nil, err
	}
}

func flood(f *os.File, line []byte) Handler {
	return func(context.Context, json.RawMessage) (any, error) {
		for {
			if _, err := f.Write(line); err != nil {
				return nil, err
			}
		}
	}
}

func handlers() map[string]Handler {
	return map[string]Handler{
		"echo":   func(_ context.Context, params json.RawMessage) (any, error) { return params, nil },
		"refuse": func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("the URL has no host") },
		"long":   func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", MaxLine), nil },
		"long refusal": func(context.Context, json.RawMessage) (any, error) {
			return nil, errors.New(strings.Repeat("x", MaxLine))
		},
		"crash":        func(context.Context, json.RawMessage) (any, error) { panic("a fault") },
		"exit":         func(context.Context, json.RawMessage) (any, error) { os.Exit(0); return nil, nil },
		"hang":         func(context.Context, json.RawMessage) (any, error) { select {} },
		"close output": func(context.Context, json.RawMessage) (any, error) { os.Stdout.Close(); select {} },
		"leak": func(context.Context, json.RawMessage) (any, error) {
			for all := [][]byte{}; ; {
				all = append(all, bytes.Repeat([]byte{1}, 1<<20))
			}
		},
		"malformed":    printed("this is no JSON\n"),
		"giant":        flood(os.Stdout, bytes.Repeat([]byte("x"), 1<<16)),
		"flood output": flood(os.Stdout, []byte("{\"id\":77}\n")),
		"flood errors": flood(os.Stderr, []byte("a line of errors\n")),
		"long error":   flood(os.Stderr, bytes.Repeat([]byte("e"), 1<<16)),
		"late":         printed("{\"id\":1}\n"), // the reply to an earlier request
		"environment":  func(context.Context, json.RawMessage) (any, error) { return os.Environ(), nil },
		"descriptors": func(context.Context, json.RawMessage) (any, error) {
			all, err := os.ReadDir("/proc/self/fd")
			var targets []string
			for _, one := range all {
				if target, err := os.Readlink("/proc/self/fd/" + one.Name()); err == nil {
					targets = append(targets, target)
				}
			}
			return targets, err
		},
		"child": func(_ context.Context, params json.RawMessage) (any, error) {
			cmd := exec.Command("sleep", "1000")
			if strings.TrimSpace(string(params)) == "true" {
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // leaves the process group
			}
			cmd.Stdout = os.Stdout // holds the pipe open
			if err := cmd.Start(); err != nil {
				return nil, err
			}
			return []int{os.Getpid(), cmd.Process.Pid}, nil
		},
	}
}
