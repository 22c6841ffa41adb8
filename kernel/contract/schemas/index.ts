export { activityCategories } from './activity-category.js'
export { AGENT_NAME_PATTERN, agentFileSchema, ANONYMOUS_AGENT } from './agent-file.js'
export type { AgentFile, AgentRules } from './agent-file.js'
export { engineAboutSchema } from './engine-about.js'
export {
  backendDevices, capabilityAliases, deviceBackends, deviceClasses, deviceClassOf, deviceClassSchema, devices, deviceSchema,
  gpuBackendOf, gpuBackends, gpuBackendSchema, modelCapabilities, slotRoleOf, slotRoles, slotStates,
  slotStateSchema, slotTypes, slotTypeSchema
} from './enums.js'
export type { Device, DeviceClass, GpuBackend, ModelCapability, SlotRole, SlotState, SlotType } from './enums.js'
export { ENV_NAME_PATTERN, envSchema, NAME_PATTERN, nameSchema, PLUGIN_NAME_PATTERN } from './names.js'
export { MAX_SLOT_PORT, MIN_CONTEXT_SIZE, slotConfigSchema, slotImageSchema, speechFormats } from './slot-config.js'
export type { SlotConfig, SlotConfigInput } from './slot-config.js'
export type { NamedSlotConfig, WrittenSlot } from './named-slot.js'
export { profileSchema } from './profile.js'
export type { NamedProfile, Profile } from './profile.js'
export { modelDefaultsSchema, modelRowSchema } from './model-row.js'
export type { Model, ModelRow } from './model-row.js'
export { gpuInfoSchema, gpuVendors, hardwareSchema, platforms } from './hardware.js'
export type { GpuInfo, HardwareInfo } from './hardware.js'
export { modelsSchema, svcConfigSchema } from './svc-config.js'
export { tomlValueSchema } from './toml-value.js'
export type { SvcConfig } from './svc-config.js'
export {
  authStyles, externalProviderSchema, modelFiltersSchema, RESERVED_UPSTREAM_NAME, UPSTREAM_NAME_PATTERN, upstreamSchema
} from './upstream.js'
export type { AuthStyle, ExternalProvider, Upstream } from './upstream.js'
export {
  reservedToolServerIds, TOOL_SERVER_ID_PATTERN, toolServerIdSchema, toolServerNetworks, toolServerSchema,
  toolServerTransports
} from './tool-server.js'
export type { NamedToolServer, ToolServer, ToolServerInput, ToolServerNetwork, ToolServerTransport } from './tool-server.js'
export { documentedShape, madeWhenRead, patchShape } from './documented.js'
export { manifestSchema } from './manifest.js'
export type { Manifest } from './manifest.js'
