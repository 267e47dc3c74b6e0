//go:build !race

package chrony

import "time"

// simEvery is how often the simulated monitors poll and the simulated packets are sent.
const simEvery = time.Second
