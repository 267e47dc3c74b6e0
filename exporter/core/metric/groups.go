package metric

// Group is a section of the documentation and its families, sorted by name.
type Group struct {
	Title string
	// Experimental families may change their name, labels or meaning in any version, as the changelog lists. The others are
	// stable: they change only in a major version, after a version that exports both.
	Experimental bool
	Descs        []*Desc
}

// Groups lists all families, in the order of the documentation.
func Groups() []Group {
	return append(append(pathGroups(), loadGroups()...), hostGroups()...)
}

// pathGroups has the groups of light probes.
func pathGroups() []Group {
	return []Group{
		{Title: TitleProbes, Descs: []*Desc{
			PathInfo, PathLabels, ProbeInterval, ProbeLastSuccess, ProbeLateness, ProbeSkipped, ProbeUp, ResolveFailures,
		}},
		{Title: TitlePackets, Descs: []*Desc{
			DSCP, DSCPRemarked, CongestionExperienced, HopChanges, Hops, LossBurst, LossBurstRatio, LossRatio,
			PacketsCorrupted, PacketsDiscarded, PacketsDuplicated, PacketsHostDropped, PacketsLate, PacketsLost,
			PacketsOutstanding, PacketsReceived, PacketsReordered, PacketsSent, RemoteRestarts, RoundTripLossRatio,
			RoundTripInvalid, DirectionUnknown, RoundTripLost, RoundTripReceived,
		}},
		{Title: TitleDelay, Descs: []*Desc{
			DelayErrorBound, DelayErrorComponent, DelayInvalid, DelayLowConfidence, DelayMax, DelayMin, DelayNegative,
			DelayQuantile, Delay, DelayTXUncertainty, DelayVariation, IPDV, Jitter, Residence, RoundTripTimeMax,
			RoundTripTimeMin, RoundTripTimeQuantile, RoundTripTime, TimestampErrorBound,
		}},
		{Title: TitleVoice, Descs: []*Desc{
			VoiceDelayImpairment, VoiceEquipmentImpairment, VoiceRError, VoiceMOS, VoiceMouthToEar, VoicePlayoutLoss, VoiceR,
		}},
	}
}

// loadGroups has the groups of load tests.
func loadGroups() []Group {
	return []Group{
		{Title: TitleRuns, Descs: []*Desc{
			QuotaLeft, QuotaLimit, QuotaSaved, QuotaUsed, KernelChecksumErrors, PathLinkInfo, PathTested, Runs, RunDuration,
			RunInterval, RunNext, RunPacketsCorrupted, RunBytes, RunLast, TestRunning,
		}},
		{Title: TitleLoad, Experimental: true, Descs: []*Desc{
			LoadedDelayElapsed, QueueAtLeast, QueueDelayBound, QueueDelay, QueueFullDelayBound, QueueFullDelay,
			QueueIdleDelayBound, QueueIdleDelay, QueueSize, QueueSizeBound, LoadedDelay, LoadedLoss, SaturationState,
			SearchMaximum, SweepLoss, SweepLossless, SweepMaximum, SweepThroughput, UDPOffered, UDPRate, UDPUnderrun,
			UDPThroughput, UDPThroughputElapsed,
		}},
		{Title: TitleWorking, Experimental: true, Descs: []*Desc{
			WorkingDelayBound, WorkingDelay, WorkingVariation, WorkingLoss, WorkingR, WorkingRTT, WorkingRoundTrips,
			WorkingRStep,
		}},
		{Title: TitleSizeSweep, Experimental: true, Descs: []*Desc{
			SizeSweepDelayBound, SizeSweepDelay, SizeSweepLoss, SizeSweepIPDV, SizeSweepReceived, SizeSweepSpread,
			SizeSweepUnderrun, SizeSweepSent,
		}},
		{Title: TitleCapacity, Experimental: true, Descs: []*Desc{
			Capacity, CapacityBound, PathCapacity, PathCapacityBound, PathCapacityHidden, PathMTU, TrainCapacity,
			TrainDispersion, TrainFragmented, Trains,
		}},
		{Title: TitleTCP, Experimental: true, Descs: []*Desc{
			MessageLoss, MessageOffered, MessageRetransmitted, MessageThroughput, TCPAckCompressed, TCPAckInterarrival,
			TCPCompletionQuantile, TCPCompletion, TCPConnect, TCPDelayErrorBound, TCPDelayQuantile, TCPDelaySamples, TCPDelay,
			TCPFairness, TCPFlowThroughput, TCPHostQueue, TCPLimited, TCPLinkRate, TCPMarked, TCPModel, TCPRecovery,
			TCPTimeouts, TCPRetransmitted, TCPRTTMin, TCPRTT, TCPSplit, TCPSplitLead, TCPSplitUndecided, TCPSweepBDP,
			TCPSweepKnee, TCPSweepModel, TCPSweepRetransmitted, TCPSweepRTT, TCPSweepThroughput, TCPThroughput,
			TCPTwoWayCorrelation, TCPTwoWayThroughput, TCPUDPRoundTrip, TCPUnfinished,
		}},
	}
}

// hostGroups has the groups of this host and its servers.
func hostGroups() []Group {
	return []Group{
		{Title: TitleClock, Descs: []*Desc{
			ClockErrorBound, ClockFrequency, ClockLastUpdate, ClockOffset, ClockQueryFailures, ClockReferenceInfo, ClockSkew,
			ClockState, ClockSteps, ClockSynchronized, RemoteClockErrorBound, RemoteClockSynchronized, TimestampCalibration,
		}},
		{Title: TitlePulse, Descs: []*Desc{
			GNSSConnected, GNSSConnections, GNSSFix, GNSSLastMessage, GNSSMalformed, GNSSPulseOffset, GNSSSatellitesSeen,
			GNSSSatellitesUsed, GNSSSawtooth, GNSSTimeOffset, PPSFitBound, PPSFitOffset, PPSJitter, PPSLast, PPSMissed,
			PPSPulses, PPSRejected,
		}},
		{Title: TitleLoadServer, Descs: []*Desc{
			LoadServerBytes, LoadServerConnections, LoadServerDiscarded, LoadServerRequests, LoadServerSessions,
			LoadServerEnded,
		}},
		{Title: TitleOutputs, Descs: []*Desc{
			OutputLastSuccess, OutputPoints, OutputRequests, OutputSpool, OutputSpoolLimit, OutputWaiting,
		}},
		{Title: TitleOnDemand, Descs: []*Desc{
			OnDemandRunning, OnDemandRequests,
		}},
		{Title: TitleReplies, Descs: []*Desc{
			OnDemandDuration, OnDemandFailure, OnDemandLoss, OnDemandSuccess,
		}},
		{Title: TitleSelf, Descs: []*Desc{
			ConfigReloadTime, ConfigReloadSuccess, HostDelay, IncidentReports, ReflectorPackets, ReflectorSessions,
			SamplesDropped, SendErrors, SocketDrops, SocketDiscarded, TimestampsMissing, Timestamps,
		}},
	}
}
