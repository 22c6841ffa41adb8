/** The public contract: what a plugin may import as `svc-gateway/plugin`. Explicit names only. */
export { hostFeatures } from './engine-requirements.js'
export type { EngineRequirements, HostFeature } from './engine-requirements.js'
export type { PluginTable } from './plugin-store.js'
export { API_VERSION, definePlugin, isPlugin } from './plugin.js'
export type { AnyPlugin, PluginDatabase, PluginDefinition, PluginFolders } from './plugin.js'
export { pluginKinds } from './context.js'
export type {
  ConfigFile, ConfigFileDefinition, ConfigFileFormat, ConfigReading, ConfigRowsDefinition, FileWorld, FlagPlace, FlagRules,
  RowWorld, SlotDependents
} from './config-file.js'
export type { ProviderWords } from './provider-words.js'
export { settingsOf, svcSchemaWith } from './settings-table.js'
export type { SettingsChange, SettingsProblem, SettingsTable } from './settings-table.js'
export { defineAgent, isAgent } from './agent.js'
export { agentOf } from './agent-of.js'
export type {
  AgentCatalog, AgentDescriptor, AgentErrand, AgentInstall, AgentPersona, AgentProbe, AgentServer, AgentSetting, AgentWiring,
  AgentWorld, NpmProgram
} from './agent.js'
export { defineService, isService, serviceVerbs } from './companion.js'
export type {
  PythonProgram, ServiceCatalog, ServiceDescriptor, ServiceImage, ServiceLook, ServiceVerb, ServiceWorld
} from './companion.js'
export type {
  BaseContext, KindMethods, PluginContext, PluginKind, ProviderMethods, RouteMethods, RuntimeMethods, ServiceMethods, ToolMethods
} from './context.js'
export { createServiceRef, isServiceRef } from './service-ref.js'
export type { Requires, ServiceOf, ServiceRef, ServicesOf } from './service-ref.js'
export { core } from './core-refs.js'
export type { ApiDocument, GatewayInfo, ProviderCatalog, ProviderWish } from './core-refs.js'
export { defineRoute, handled, httpMethods, isRoute, isSse, sse } from './route.js'
export type {
  AnyRoute, BodyKind, CallOf, HttpMethod, RouteCall, RouteDefinition, RouteSchema, SseEvent, SseReply
} from './route.js'
export { defineWebSocket, isWebSocket } from './web-socket.js'
export type { ServedSocket, ServeSocket, WebSocketBounds, WebSocketDefinition, WebSocketReply } from './web-socket.js'
export { isJsonAnswer, jsonAnswer, KeptBytes, KeptJson } from './json-answer.js'
export type { JsonAnswer } from './json-answer.js'
export { backoffMs, crashAttempts } from '../async/backoff.js'
export { Latest } from '../async/latest.js'
export { SerialQueue } from '../async/serial-queue.js'
export { abortable, pause, settlesWithin } from '../async/waiting.js'
export { whileConnected } from './while-connected.js'
export {
  builtinRuntimes, defineRuntime, isRuntime, LABEL_CONFIG, LABEL_GENERATION, LABEL_INSTANCE, LABEL_SLOT
} from './engine-runtime.js'
export type {
  ContainerForm, ContainerRuntime, EngineExit, EngineForm, EngineInspection, EngineRunState, EngineSpec, LogOptions,
  ProcessForm, PullProgress, RuntimeDefinition
} from './engine-runtime.js'
export { defineProvider, exclusivities, isProvider, NO_PROVIDER } from './provider.js'
export type {
  CatalogueModel, ChildSlot, EngineMetrics, EngineProvider, Exclusivity, HealthAnswer, HealthCheck, HealthReport,
  HealthVerdict, SlotPlace, WarmUpInput
} from './provider.js'
export type { EngineStore, StoreOwner } from './engine-store.js'
export type { EngineFetch, EngineModel, EngineModels, FetchFile, FetchInput, FetchProgress } from './engine-models.js'
export type { DefaultFor, ModelNames, ProviderFacts, ProviderImage } from './provider-facts.js'
export { argvSegmentNames } from './provider-launch.js'
export type {
  ArgvSegmentName, FlagGrammar, LaunchInput, LaunchSpecInput, MountSpec, ProcessCandidate, ProviderContainerSpec, ProviderSegments
} from './provider-launch.js'
export { shellText, shellWords } from './shell-words.js'
export { bodyChecksum, canonicalJson } from './canonical-json.js'
export type { GpuClaim } from './gpus.js'
export { deviceOfGpu, gpuMemoryMb, gpuPoolOf, gpusOf, gpusOfSlot, mainGpuOf, mainGpusOf, rankGpus, shareGpu } from './gpus.js'
export { fitStatuses, memoryFit } from './memory-fit.js'
export type { FitStatus, MemoryFit } from './memory-fit.js'
export { portableArgs, portableFlags } from './portable-args.js'
export type { PortableArgs } from './portable-args.js'
export { surfaceNames } from './surface-names.js'
export type { SurfaceName } from './surface-names.js'
export { upstreamTemplateSchema } from './upstream-template.js'
export type { UpstreamTemplate, UpstreamTemplateInput } from './upstream-template.js'
export type { AdaptedAnswer, AdaptRequest, Surface, Surfaces } from './provider-surface.js'
export type { EventAsk, EventEditor, StreamEvent } from './event-editor.js'
export { descriptorPlaceholders, providerDescriptorSchema } from './descriptor.js'
export type { ProviderDescriptor } from './descriptor.js'
export type { WireDialect } from './wire-dialect.js'
export { defineTool, isTool, TOOL_NAME_PATTERN, TOOL_SERVER_PATTERN } from './tool.js'
export type { RouteTool, ToolAnnotations, ToolCall, ToolDefinition, ToolWords } from './tool.js'
export { applyClasses } from './setting.js'
export type { ApplyClass, SettingDefinition } from './setting.js'
export { isSecretKey, redact, redactLine } from './redact.js'
export type { CleanText } from './redact.js'
export {
  errorEnvelope, errorType, isSvcError, mayHeal, messageOf, retryAfterS, retryHeader, SvcError, svcError
} from './errors.js'
export type { ErrorEnvelope, SvcErrorOptions } from './errors.js'
export { jsonBounds, jsonExcess } from './json-bounds.js'
export type { JsonBounds } from './json-bounds.js'
export { createLineSplitter } from './line-splitter.js'
export type { LineSplitter } from './line-splitter.js'
export { shownFacts, shownLine, shownMessage, shownName } from './shown-text.js'
export { errorCodes, isErrorCode } from './error-codes.js'
export type { ErrorCode, ErrorRow } from './error-codes.js'
export { defineErrors, isPluginErrors } from './define-errors.js'
export type { ErrorKind, PluginErrors } from './define-errors.js'
export { aboutText, type EngineAbout } from './engine-about.js'
export { atPort } from './engine-client.js'
export type { EngineAddress, EngineClient, EngineRequest, EngineResponse } from './engine-client.js'
export type { Logger, LogFn } from './logger.js'
export * from './schemas/index.js'
export * from './services/index.js'
