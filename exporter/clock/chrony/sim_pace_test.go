//go:build !race

package chrony

import "time"

// simEvery is how often the simulated monitors ask and the simulated packets go.
const simEvery = time.Second
