import type { ApplyClass, SettingsTable } from 'svc-gateway/plugin'
import { z } from 'zod'
import { channels } from './channel-names.js'

const live = (description: string): { readonly description: string, readonly apply_class: ApplyClass } =>
  ({ description, apply_class: 'live' })

const telemetrySchema = z.strictObject({
  enabled: z.boolean().default(false).meta(live('Whether anonymous usage may be reported; this release reports none')),
  channel: z.enum(channels).default('stable').meta(live('Release channel of updates'))
})

/** `[telemetry]` of svc.toml. */
export const telemetrySettings: SettingsTable<typeof telemetrySchema> = { name: 'telemetry', schema: telemetrySchema }

const path = z.string().max(4096)

/** `[plugins.config.updates]`. What is empty here is as the release says that runs (release.json beside its package.json). */
export const updatesConfigSchema = z.strictObject({
  auto_check: z.boolean().default(true).meta({ description: 'Ask the channel once a day whether there is a newer release; only an installation that can update itself does' }),
  releases_url: z.string().max(2000).default('').meta({ description: 'URL of the folder with the channel manifests; SVC_RELEASES_URL overrides it. Empty is that of the running release' }),
  signer_identity: z.string().max(500).default('').meta({ description: 'Regular expression that the whole identity in the signing certificate must match; empty is that of the running release' }),
  signer_issuer: z.string().max(500).default('').meta({ description: 'Issuer in the signing certificate; empty is that of the running release' }),
  trusted_root: path.default('').meta({ description: 'File with the trusted root of a Sigstore of your own, as JSON; empty is the public one' }),
  public_key: path.default('').meta({ description: 'PEM file with the public key that signs releases; with one, signatures by certificates are not accepted' }),
  confirm_s: z.number().min(0.1).max(600).default(30).meta({ description: 'How long a new release must have run and still answer before it is kept' }),
  answer_within_s: z.number().min(1).max(3600).default(240).meta({ description: 'How long a new release may take from its start until it is kept, before the gateway goes back' }),
  download_limit_bytes: z.int().min(1).default(512 * 1024 ** 2).meta({ description: 'Largest archive of a release' }),
  unpacked_limit_bytes: z.int().min(1).default(4 * 1024 ** 3).meta({ description: 'Maximum unpacked size of a release' })
})

export type UpdatesConfig = z.output<typeof updatesConfigSchema>

/** What `npm run release` wrote into the tree of the release that runs: where others come from, and who signs them. */
export const releaseFileSchema = z.looseObject({
  releases_url: z.string().optional(),
  signer_identity: z.string().optional(),
  signer_issuer: z.string().optional(),
  public_key: z.string().optional()
})
