// Command oneway-telegraf is Telegraf's input plugin oneway, run by inputs.execd.
package main

import (
	"os"

	"oneway.example/telegraf-plugins/internal/external"
	"oneway.example/telegraf-plugins/plugins/inputs/oneway"
)

func main() { os.Exit(external.Main("oneway", oneway.New(), os.Args)) }
