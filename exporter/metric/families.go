package metric

// Group is a heading of the documentation and its families.
type Group struct {
	Title string
	Descs []*Desc
}

// Groups lists every family, in the order of the documentation.
func Groups() []Group {
	return []Group{
		{"What a probe says of itself", []*Desc{
			ProbeUp,
			ProbeLastSuccess,
			ProbeSkipped,
			ProbeLateness,
			PathInfo,
			ProbeInterval,
			ResolveFailures,
		}},
		{"Packets", []*Desc{
			PacketsSent,
			PacketsReceived,
			PacketsLost,
			PacketsInFlight,
			PacketsDuplicated,
			PacketsReordered,
			PacketsLate,
			PacketsCorrupted,
			PacketsDiscarded,
			DirectionUnknown,
			RoundTripLost,
			RoundTripReceived,
			LossBurst,
			LossBurstRatio,
			LossRatio,
			FarRestarts,
		}},
		{"Delay", []*Desc{
			Delay,
			DelayMin,
			DelayMax,
			DelayQuantile,
			DelayErrorBound,
			DelayHeld,
			DelayInvalid,
			DelayNegative,
			DelayVariation,
			IPDV,
			Jitter,
			RoundTripTime,
			RoundTripTimeMin,
			RoundTripTimeMax,
			RoundTripTimeQuantile,
			Residence,
		}},
		{"Voice", []*Desc{
			VoiceR,
			VoiceMOS,
			VoiceDelayImpairment,
			VoiceEquipmentImpairment,
			VoiceMouthToEar,
			VoicePlayoutLoss,
		}},
		{"Clock", []*Desc{
			ClockSynchronized,
			ClockState,
			ClockErrorBound,
			ClockOffset,
			ClockFrequency,
			ClockSkew,
			ClockReferenceInfo,
			ClockLastUpdate,
			ClockSteps,
			ClockQueryFailures,
		}},
		{"Self", []*Desc{
			Timestamps,
			TimestampsMissing,
			HostDelay,
			SocketDrops,
			SocketDiscarded,
			SendErrors,
			ReflectorPackets,
			ReflectorSessions,
			ConfigReloadSuccess,
			ConfigReloadTime,
		}},
	}
}
