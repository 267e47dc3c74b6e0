package queue

// Analyse looks at a run: the packets of one direction in the order of sending.
func Analyse(packets []Packet, o Options) Result {
	return Result{Evidence: "no packets"}
}
