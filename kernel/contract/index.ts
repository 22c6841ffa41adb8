/** The public contract: what a plugin may import as `svc-gateway/plugin`. Explicit names only. */
export { hostFeatures } from './provider/engine-requirements.js'
export type { EngineRequirements, HostFeature } from './provider/engine-requirements.js'
export type { PluginTable } from './plugin/plugin-store.js'
export { API_VERSION, definePlugin, isPlugin } from './plugin/plugin.js'
export type { AnyPlugin, PluginDatabase, PluginDefinition, PluginFolders } from './plugin/plugin.js'
export { pluginKinds } from './plugin/context.js'
export type {
  ConfigFile, ConfigFileDefinition, ConfigFileFormat, ConfigReading, ConfigRowsDefinition, FileWorld, FlagPlace, FlagRules,
  RowWorld, SlotDependents
} from './plugin/config-file.js'
export type { ProviderWords } from './provider/provider-words.js'
export { settingsOf, svcSchemaWith } from './plugin/settings-table.js'
export type { SettingsChange, SettingsProblem, SettingsTable } from './plugin/settings-table.js'
export { defineAgent, isAgent } from './agent/agent.js'
export { agentOf } from './agent/agent-of.js'
export type {
  AgentCatalog, AgentDescriptor, AgentErrand, AgentInstall, AgentPersona, AgentProbe, AgentServer, AgentSetting, AgentWiring,
  AgentWorld, NpmProgram
} from './agent/agent.js'
export { defineService, isService, serviceVerbs } from './agent/companion.js'
export type {
  PythonProgram, ServiceCatalog, ServiceDescriptor, ServiceImage, ServiceLook, ServiceSlot, ServiceVerb, ServiceWorld
} from './agent/companion.js'
export type {
  BaseContext, KindMethods, PluginContext, PluginKind, ProviderMethods, RouteMethods, RuntimeMethods, ServiceMethods, ToolMethods
} from './plugin/context.js'
export { formParts } from './http/form.js'
export { isGatewaySecret } from './text/gateway-secret.js'
export { givenBody, giverOf, translated } from './http/translated.js'
export type { ChunkGiver, ChunkReader, ChunkTranslator } from './http/translated.js'
export type { FormPart } from './http/form.js'
export { createServiceRef, isServiceRef } from './plugin/service-ref.js'
export type { Requires, ServiceOf, ServiceRef, ServicesOf } from './plugin/service-ref.js'
export { core } from './plugin/core-refs.js'
export type { ApiDocument, GatewayInfo, ProviderCatalog, ProviderWish } from './plugin/core-refs.js'
export { defineRoute, handled, httpMethods, isRoute, isSse, jsonLines, sse } from './http/route.js'
export type {
  AnyRoute, BodyKind, CallOf, HttpMethod, RouteCall, RouteDefinition, RouteSchema, SseEvent, SseReply
} from './http/route.js'
export { defineWebSocket, isWebSocket } from './http/web-socket.js'
export type { ServedSocket, ServeSocket, WebSocketBounds, WebSocketDefinition, WebSocketReply } from './http/web-socket.js'
export { isJsonAnswer, jsonAnswer, KeptBytes, KeptJson } from './http/json-answer.js'
export type { JsonAnswer } from './http/json-answer.js'
export { backoffMs, crashAttempts } from '../async/backoff.js'
export { withBudget } from '../async/budget.js'
export { Changes } from '../async/changes.js'
export { Latest } from '../async/latest.js'
export { SerialQueue } from '../async/serial-queue.js'
export { abortable, linkedAbort, pause, settlesWithin, within } from '../async/waiting.js'
export { LogFolding } from '../sqlite/log-folding.js'
export { openSqlFile, openSqlFileWith, SqlFile } from '../sqlite/sql-file.js'
export type { SqlConnection, SqlDriver, SqlFileOptions, SqlValue, SqlVersion } from '../sqlite/sql-file.js'
export { whileConnected } from './http/while-connected.js'
export {
  builtinRuntimes, defineRuntime, isRuntime, LABEL_CONFIG, LABEL_GENERATION, LABEL_INSTANCE, LABEL_PLACE, LABEL_SLOT
} from './provider/engine-runtime.js'
export type {
  ContainerForm, ContainerRuntime, EngineExit, EngineForm, EngineInspection, EngineRunState, EngineSpec, LogOptions,
  ProcessForm, PullProgress, RuntimeDefinition
} from './provider/engine-runtime.js'
export type { RuntimeInfo, RuntimeView } from './provider/runtime-info.js'
export { defineProvider } from './provider/define-provider.js'
export { exclusivities, isProvider, NO_PROVIDER } from './provider/provider.js'
export { wavFile } from './provider/wav-file.js'
export type {
  CatalogueModel, ChildSlot, EngineMetrics, EngineProvider, Exclusivity, HealthAnswer, HealthCheck, HealthReport,
  HealthVerdict, SlotPlace, UnservedChild, WarmUpInput
} from './provider/provider.js'
export type { EngineStore, StoreOwner } from './provider/engine-store.js'
export type { EngineFetch, EngineModel, EngineModels, FetchFile, FetchInput, FetchProgress } from './provider/engine-models.js'
export type { DefaultFor, ModelFolder, ModelNames, ProviderFacts, ProviderImage } from './provider/provider-facts.js'
export { argvSegmentNames } from './provider/provider-launch.js'
export type {
  ArgvSegmentName, FlagGrammar, LaunchInput, LaunchSpecInput, MountSpec, ProcessCandidate, ProviderContainerSpec, ProviderSegments
} from './provider/provider-launch.js'
export { shellText, shellWords } from './text/shell-words.js'
export { bodyChecksum, canonicalJson } from './text/canonical-json.js'
export type { GpuClaim } from './gpus.js'
export { deviceOfGpu, gpuMemoryMb, gpuPoolOf, gpusOf, gpusOfSlot, mainGpuOf, mainGpusOf, rankGpus, shareGpu } from './gpus.js'
export { fitStatuses, memoryFit } from './memory-fit.js'
export type { FitStatus, MemoryFit } from './memory-fit.js'
export { portableArgs, portableFlags } from './text/portable-args.js'
export type { PortableArgs } from './text/portable-args.js'
export { surfaceNames } from './surface-names.js'
export type { SurfaceName } from './surface-names.js'
export { upstreamTemplateSchema } from './provider/upstream-template.js'
export type { UpstreamTemplate, UpstreamTemplateInput } from './provider/upstream-template.js'
export type { AdaptedAnswer, AdaptRequest, Surface, SurfaceForm, Surfaces } from './provider/provider-surface.js'
export type { EventAsk, EventEditor, StreamEvent } from './http/event-editor.js'
export { descriptorPlaceholders, providerDescriptorSchema } from './provider/descriptor.js'
export type { ProviderDescriptor } from './provider/descriptor.js'
export type { StreamForm, WireDialect } from './http/wire-dialect.js'
export { defineTool, isTool, TOOL_NAME_PATTERN, TOOL_SERVER_PATTERN } from './tool.js'
export type { RouteTool, ToolAnnotations, ToolCall, ToolDefinition, ToolWords } from './tool.js'
export { applyClasses } from './schemas/setting.js'
export type { ApplyClass, SettingDefinition } from './schemas/setting.js'
export { isSecretKey, redact, redactLine } from './text/redact.js'
export type { CleanText } from './text/redact.js'
export {
  errorEnvelope, errorType, isSvcError, mayHeal, messageOf, retryAfterS, retryHeader, SvcError, svcError
} from './errors/errors.js'
export type { ErrorEnvelope, SvcErrorOptions } from './errors/errors.js'
export { jsonBounds, jsonExcess } from './http/json-bounds.js'
export type { JsonBounds } from './http/json-bounds.js'
export { createLineSplitter } from './text/line-splitter.js'
export type { LineSplitter } from './text/line-splitter.js'
export { shownFacts, shownLine, shownMessage, shownName } from './text/shown-text.js'
export { stateWords } from './text/state-words.js'
export { errorCodes, isErrorCode } from './errors/error-codes.js'
export type { ErrorCode, ErrorRow } from './errors/error-codes.js'
export { defineErrors, isPluginErrors } from './errors/define-errors.js'
export type { ErrorKind, PluginErrors } from './errors/define-errors.js'
export { aboutText, type EngineAbout } from './provider/engine-about.js'
export { slotAbilities } from './provider/slot-abilities.js'
export type { AbilityInput, SlotAbilities, SlotAbility } from './provider/slot-abilities.js'
export { atPort } from './provider/engine-client.js'
export type { EngineAddress, EngineClient, EngineRequest, EngineResponse } from './provider/engine-client.js'
export type { Logger, LogFn } from './logger.js'
export * from './schemas/index.js'
export * from './services/index.js'
