import { z } from 'zod'
import { engineAboutSchema } from '../schemas/engine-about.js'
import { deviceSchema, slotTypeSchema } from '../schemas/enums.js'
import { envSchema, PLUGIN_NAME_PATTERN, PORT_NAME_PATTERN, runtimeNameSchema } from '../schemas/names.js'
import { hostFeatures } from './engine-requirements.js'
import { exclusivities } from './provider.js'
import { profileSchema } from '../schemas/profile.js'
import { slotAbilities } from './slot-abilities.js'
import { surfaceNames } from '../surface-names.js'

/** One of `ports`; absent: the main one. */
const namedPort = z.string().optional()
const enginePath = z.string().startsWith('/', { error: 'must start with a slash' })

/** Placeholders that `command` templates may use. A token whose placeholder has no value is left out with its flag. */
export const descriptorPlaceholders = [
  'model_path', 'model_name', 'port', 'host', 'context_size', 'mmproj_path', 'state_dir', 'workers'
] as const

/**
 * A provider with no code: an image or a program, a command template and the paths it serves.
 * Lives in a package (`"svc": { "descriptor": "./engine.toml" }`) or in `<etc>/engines/<name>.toml`.
 */
export const providerDescriptorSchema = z.strictObject({
  name: z.string().regex(PLUGIN_NAME_PATTERN, { error: 'must be kebab-case' }),
  apiVersion: z.literal(1),
  title: z.string().default(''),
  family: z.string().optional(),
  image: z.string().min(1).optional().meta({ description: 'Container image; absent for an engine that only runs as a process' }),
  entrypoint: z.array(z.string()).optional(),
  command: z.array(z.string()).default([]).meta({ description: 'Arguments with {placeholders}' }),
  process: z.array(z.string()).min(1).optional().meta({ description: 'Program and arguments for running without a container' }),
  runtime: runtimeNameSchema.optional()
    .meta({ description: 'How slots run by default: `container`, `process` also beside a container engine, `docker`, `podman`, or a plugin\'s driver. An engine without image and command runs as a process by default' }),
  env: envSchema.default({}),
  devices: z.array(deviceSchema).min(1).default(['cpu']),
  slot_types: z.array(slotTypeSchema).min(1).default(['llm']),
  needs_model: z.boolean().default(true),
  aliases: z.array(z.string().min(1)).default([]).meta({ description: 'Other names that slot files and requests may use' }),
  default_for: z.array(z.strictObject({ type: slotTypeSchema, device: deviceSchema.optional() })).default([])
    .meta({ description: 'Slots without a provider that it runs by default: those of a type, or of a type on a device' }),
  reserved_ports: z.array(z.int().min(1024).max(65_535)).default([])
    .meta({ description: 'Ports reserved for its own slots, which get the first one' }),
  vulkan_variable: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'must be the name of an environment variable' }).optional()
    .meta({ description: 'Environment variable that tells it by number which GPUs to use on `gpu-vulkan`, such as `GGML_VK_VISIBLE_DEVICES`' }),
  profiles: z.record(z.string(), profileSchema).default({}).meta({ description: 'Profiles that come with it, by name' }),
  ports: z.array(z.string().regex(PORT_NAME_PATTERN, { error: 'must be lower case letters, digits, _ and -' })).default([])
    .meta({ description: 'Names of further ports, chosen at each launch: `{port.metrics}` for the name `metrics`' }),
  exclusivity: z.enum(exclusivities).default('standard'),
  concurrency: z.enum(['workers', 'unlimited']).default('workers')
    .meta({ description: 'Requests sent to the engine at once: `workers` of the slot, or no limit' }),
  requires: z.strictObject({
    memory_mb: z.int().min(0).default(0).meta({ description: 'MiB of the GPU, or of the host for other devices' }),
    drivers: z.array(z.string().min(1)).default([]).meta({ description: 'Kernel drivers of GPUs, of which one is required' }),
    features: z.array(z.enum(hostFeatures)).default([])
  }).prefault({}).meta({ description: 'What the engine needs of the machine' }),
  about: engineAboutSchema.optional().meta({ description: 'Licence and homepage, shown before the image is pulled for the first time' }),
  health: z.strictObject({ path: enginePath.default('/health'), port: namedPort }).prefault({}),
  abilities: z.partialRecord(z.enum(slotAbilities), z.boolean()).default({})
    .meta({ description: 'Features that every slot of it has (true) or lacks (false); one that is left out is unknown, and the engine decides' }),
  surfaces: z.partialRecord(z.enum(surfaceNames), z.strictObject({
    path: enginePath,
    port: namedPort,
    streaming: z.boolean().default(true),
    body: z.enum(['json', 'multipart']).default('json')
  })).refine(s => Object.keys(s).length > 0, { error: 'must name at least one surface' })
}).refine(d => d.image !== undefined || d.process !== undefined, {
  path: ['image'], error: 'give `image`, `process`, or both'
}).superRefine(({ ports, health, surfaces }, { addIssue }) => {
  const users = [[['health'], health], ...Object.entries(surfaces).map(([name, surface]) => [['surfaces', name], surface] as const)] as const
  for (const [path, { port }] of users) {
    if (port === undefined || ports.includes(port)) continue
    addIssue({ code: 'custom', path: [...path, 'port'], message: `names the port '${port}', which is not in \`ports\`` })
  }
})

export type ProviderDescriptor = z.output<typeof providerDescriptorSchema>
