package runreason

// The ends of sessions at a load server: the values of the label reason of oneway_load_server_sessions_ended_total.
const (
	EndClosed       = "closed"
	EndLost         = "lost"
	EndSilent       = "silent"
	EndProtocol     = "protocol"
	EndShuttingDown = "shutting_down"
	EndPaused       = "paused"
	EndTimeLimit    = "time_limit"
	EndRevoked      = "revoked"
	EndRateLimit    = "rate_limit"
)

// Ends are all ends with their meanings, as METRICS.md has them.
func Ends() []string {
	return []string{
		EndClosed + ": by the client",
		EndLost + ": the control connection ended",
		EndSilent + ": no message or test packet of the client, or none of its cookies",
		EndProtocol + ": an invalid message",
		EndShuttingDown + ": the load server stops",
		EndPaused + ": the load server did not run for a second or more",
		EndTimeLimit + ": longer than announced, or for a minute without traffic",
		EndRevoked + ": the token was removed from the tokens file or replaced",
		EndRateLimit + ": the token's rate was lowered during a transfer of TCP",
	}
}
