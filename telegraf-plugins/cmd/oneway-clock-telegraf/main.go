// Command oneway-clock-telegraf is Telegraf's input plugin oneway_clock, run by inputs.execd.
package main

import (
	"os"

	"oneway.example/telegraf-plugins/internal/external"
	oneway_clock "oneway.example/telegraf-plugins/plugins/inputs/oneway_clock"
)

func main() { os.Exit(external.Main("oneway_clock", oneway_clock.New(), os.Args)) }
