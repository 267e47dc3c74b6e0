// Command link is the router between the networks of both agents of the stack: the emulated link of package lab
// between two interfaces, which a PUT of a profile changes.
//
//	PUT /profile    the body is a profile as the files of tests/lab/profiles
//	GET /counts     what became of the packets of both directions, as JSON
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"time"

	"oneway.example/exporter/core/sample"
	"oneway.example/tests/lab"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "link:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("%d arguments, want a profile, the client's interface and the server's", len(args))
	}
	profile, err := lab.LoadProfile(args[0])
	if err != nil {
		return err
	}
	wire, err := lab.NewWire(args[1], args[2], lab.Options{Profile: profile, Seed: 1, Classifier: nothing})
	if err != nil {
		return err
	}
	defer func() { _ = wire.Close() }()
	server := &http.Server{Addr: ":8080", Handler: handler(wire), ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// nothing selects no packet for the log: a stack runs for long.
func nothing([]byte, netip.AddrPort, netip.AddrPort) (key uint64, ok bool) { return 0, false }

func handler(wire *lab.Wire) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /profile", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		if err == nil {
			var profile lab.Profile
			if profile, err = lab.ParseProfile("request", text); err == nil {
				err = wire.SetProfile(profile)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) {
		counts := map[string]lab.Counts{}
		for _, d := range sample.Directions() {
			_, counts[d.String()] = wire.Counts(d)
		}
		if err := wire.Err(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(counts) // the client sees a cut reply
	})
	return mux
}
