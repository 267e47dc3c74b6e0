//go:build race

package chrony

import "time"

// simEvery is longer under the race detector, which slows the simulation down twenty
// times and has nothing to find in its one goroutine.
const simEvery = 5 * time.Second
