export { activityKinds, activityOutcomes, activitySeverities } from './activity.js'
export type {
  ActivityFailure, ActivityFilter, ActivityLog, ActivityNote, ActivityPage, ActivityQuery, ActivityRow, NewActivity
} from './activity.js'
export { approvalStates } from './approvals.js'
export type {
  ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalQuery, ApprovalRow, ApprovalRows, ApprovalState, NewApproval
} from './approvals.js'
export type { Clock, Timer } from './clock.js'
export type { ChangeOptions, ConfigDraft, ConfigRows } from './config/config-draft.js'
export type { ConfigCheck, Finding } from './config/config-check.js'
export { findingSeverities } from './config/config-check.js'
export type { ConfigService, ConfigSnapshot, Diagnostic, Paths } from './config/config.js'
export { modelStatuses } from './dispatch.js'
export type {
  AnswerTap, AnswerTapHead, BodyEdits, CallAnswer, ComposeOptions, DispatchService, DispatchTarget, ForwardOptions, HeldPart,
  Interceptor, JsonBody, ModelObject, ModelStatus, Otherwise, OtherwiseRequest, PluginCall, TakenAnswer, TakenRequest,
  TargetRequest, UploadOptions, UpstreamView
} from './dispatch.js'
export type { EngineTask, EngineTaskOptions, EngineTasks } from './slots/engine-tasks.js'
export { severities } from './events.js'
export type { EventBus, EventFilter, GatewayEvent, NewEvent, Severity } from './events.js'
export { gpuModes } from './slots/gpu.js'
export type { GpuArbiter, GpuMode, GpuStatus, SlotGate } from './slots/gpu.js'
export type { GpuReading, HardwareReading, HardwareService } from './hardware.js'
export type { Installation } from './installation.js'
export type { Listener, ListenerOptions, ListenerService } from './listeners.js'
export { jobStates } from './jobs.js'
export type { Job, JobPatch, JobQuery, JobState, JobStore, NewJob } from './jobs.js'
export type { ModelFileFacts, ModelFileKind, ModelFiles, ModelRegistry, NewModelRow, RegistryFile } from './models.js'
export { bootPhases, pluginStates } from './plugins.js'
export type {
  BootPhase, PluginConfigProblem, PluginErrorRow, PluginLogLine, PluginReport, PluginService, PluginSetting, PluginStanding,
  PluginState, WaitingVersion
} from './plugins.js'
export type { Program, Programs, ProgramSpec } from './programs.js'
export type { DaemonOptions, DaemonService, DaemonSpec, DaemonStatus } from './daemons.js'
export type { OutgoingCall, OutgoingEnd, OutgoingUsage, OutgoingWatch } from './outgoing.js'
export { requestPhases, requestPriorities, requestSurfaces } from './requests.js'
export type {
  RequestPhase, RequestPriority, RequestService, RequestSummary, RequestSurface, RequestView
} from './requests.js'
export { slotRules } from './slots/slot-draft.js'
export type { SlotDraft, SlotProblem, SlotRule, SlotWish } from './slots/slot-draft.js'
export { launchNeeds } from './slots/slot-outlook.js'
export type { LaunchDifference, LaunchTrouble, ProfileOutlook, ResolvedArgv, SlotOutlook } from './slots/slot-outlook.js'
export { pullStates } from './slots/slot-status.js'
export type {
  HeldEngine, ImagePullStatus, LogQuery, PullState, ReplicaStatus, SlotFailure, SlotMetrics, SlotStatus, SlotVoices, UnreadSlot
} from './slots/slot-status.js'
export { convergences } from './slots/slots.js'
export type { Convergence, SlotLease, SlotService } from './slots/slots.js'
export type { ThroughputHistory, ThroughputQuery, ThroughputService } from './slots/throughput.js'
export type {
  AgentFiles, ApprovalGate, ApprovalRequest, JsonSchema, ToolCaller, ToolCatalogue, ToolClass, ToolContent, ToolEntry,
  ToolExposure, ToolOutcome, ToolPassage, ToolServerInfo, ToolServerParts, ToolSource, ToolTarget, ToolView, ToolViewer, ToolWire
} from './tools.js'
export { circuitStates, upstreamSources } from './upstreams.js'
export type { CircuitView, UpstreamAnswer, UpstreamReading, UpstreamService, UpstreamStatus } from './upstreams.js'
