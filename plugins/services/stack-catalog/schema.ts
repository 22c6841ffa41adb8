import {
  deviceSchema, modelCapabilities, nameSchema, PLUGIN_NAME_PATTERN, profileSchema, slotRoles, slotTypeSchema
} from 'svc-gateway/plugin'
import { z } from 'zod'
import { capabilityChildren } from '../capabilities/ref.js'

/** The format of a stack's body, in stacks.toml and in envelopes. */
export const STACK_VERSION = 1

const providerSchema = z.string().regex(PLUGIN_NAME_PATTERN, { error: 'must be a provider name: lowercase words joined by dashes' })

/** One capability that a stack brings along with a slot. */
export const stackCapabilitySchema = z.strictObject({
  child: z.enum(capabilityChildren),
  device: deviceSchema.nullable().default(null),
  provider: providerSchema.nullable().default(null),
  model: z.string().min(1).nullable().default(null),
  enabled: z.boolean().default(true)
})

/** One slot as a stack wants it. What is unset is left to the host and to the gateway's defaults. */
export const stackSlotSchema = z.strictObject({
  slot: nameSchema,
  model: z.string().min(1).nullable().default(null).meta({ description: 'Without one the row only carries capabilities' }),
  type: slotTypeSchema.nullable().default(null).meta({ description: 'Type of a slot that has to be created; unset is llm' }),
  profile: nameSchema.nullable().default(null),
  device: deviceSchema.nullable().default(null),
  provider: providerSchema.nullable().default(null),
  role: z.enum(slotRoles).nullable().default(null),
  vision: z.boolean().default(false),
  mtp: z.boolean().nullable().default(null).meta({ description: 'true on, false off, unset automatic' }),
  enable_thinking: z.boolean().nullable().default(null),
  server_extra_args: z.union([z.string(), z.array(z.string())], { error: 'must be a string or a list of strings' }).nullable().default(null),
  capabilities: z.array(stackCapabilitySchema).default([])
})

/** What is known of a model that a stack refers to: enough to find it again, and no path of any host. */
export const stackModelSchema = z.strictObject({
  id: z.string().min(1),
  name: z.string().default(''),
  hf_repo: z.string().default(''),
  hf_filename: z.string().default(''),
  size_bytes: z.int().min(0).default(0),
  quant: z.string().default(''),
  capabilities: z.array(z.enum(modelCapabilities)).default([]),
  backends: z.array(z.string()).default([]),
  mmproj: z.literal('present').nullable().default(null).meta({ description: 'Whether it has a projector sidecar' })
})

/** A stack: slots and what they refer to, as one portable bundle. */
export const stackSchema = z.strictObject({
  name: z.string().min(1),
  description: z.string().default(''),
  author: z.string().default(''),
  icon: z.string().default(''),
  tags: z.array(z.string()).default([]),
  schema_version: z.literal(STACK_VERSION).default(STACK_VERSION),
  svc_version: z.string().default('').meta({ description: 'Release that made it' }),
  slots: z.array(stackSlotSchema).default([]),
  profiles: z.record(nameSchema, profileSchema).default({}).meta({ description: 'Copies of the profiles that rows name' }),
  models: z.record(z.string(), stackModelSchema).default({}).meta({ description: 'By model id' })
}).superRefine((stack, context) => {
  const seen = new Set<string>()
  const children = new Set<string>()
  stack.slots.forEach((row, i) => {
    if (seen.has(row.slot)) context.addIssue({ code: 'custom', path: ['slots', i, 'slot'], message: 'names a slot that an earlier row names' })
    seen.add(row.slot)
    row.capabilities.forEach(({ child }, k) => {
      if (children.has(child)) context.addIssue({ code: 'custom', path: ['slots', i, 'capabilities', k, 'child'], message: 'is already there; a capability has only one place' })
      children.add(child)
    })
  })
})

export type Stack = z.output<typeof stackSchema>
export type StackSlot = z.output<typeof stackSlotSchema>
export type StackCapability = z.output<typeof stackCapabilitySchema>
export type StackModel = z.output<typeof stackModelSchema>
export interface NamedStack extends Stack { readonly slug: string, readonly seed: boolean }
