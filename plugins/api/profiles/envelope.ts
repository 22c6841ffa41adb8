import { bodyChecksum, portableFlags, profileSchema, type NamedProfile, type Profile } from 'svc-gateway/plugin'
import { z } from 'zod'
import { badEnvelope } from './profile-errors.js'
import { ENVELOPE_KIND, ENVELOPE_VERSION, type envelopeSchema } from './schemas.js'

export type ProfileEnvelope = z.output<typeof envelopeSchema>

/** Unknown keys are ignored; a missing checksum is not a wrong one. */
const incomingSchema = z.looseObject({
  kind: z.literal(ENVELOPE_KIND),
  schema_version: z.int().min(1),
  name: z.string().optional(),
  checksum: z.string().nullish(),
  profile: z.record(z.string(), z.unknown())
})

export interface OpenedEnvelope {
  readonly name: string | null
  readonly schemaVersion: number
  readonly profile: Profile
  readonly checksumOk: boolean
}

/** A profile as it may leave this host: no name of ours in it, no secrets, no paths. Pure. */
export function sealProfile (profile: NamedProfile, release: string, now: number): ProfileEnvelope {
  const { flags, omitted } = portableFlags(profile.flags)
  const body = profileSchema.parse({ ...bodyOf(profile), flags })
  return {
    kind: ENVELOPE_KIND,
    schema_version: ENVELOPE_VERSION,
    svc_version: release,
    exported_at: new Date(now).toISOString(),
    name: profile.name,
    checksum: bodyChecksum(body),
    profile: body,
    ...(omitted.length === 0 ? {} : { omitted: [...omitted] })
  }
}

/** Throws `profiles.bad_envelope` for everything but a wrong checksum, which the caller judges. Pure. */
export function openEnvelope (envelope: unknown): OpenedEnvelope {
  const incoming = incomingSchema.safeParse(envelope)
  if (!incoming.success) throw badEnvelope(firstIssue(incoming.error))
  const { schema_version: version, name, checksum, profile } = incoming.data
  if (version > ENVELOPE_VERSION) {
    throw badEnvelope(`its format is version ${version}, and this release knows versions up to ${ENVELOPE_VERSION}; update the gateway`,
      { got: version, supported: ENVELOPE_VERSION })
  }
  const body = profileSchema.safeParse(profile)
  if (!body.success) throw badEnvelope(`profile: ${firstIssue(body.error)}`)
  return {
    name: name ?? null,
    schemaVersion: version,
    profile: body.data,
    checksumOk: checksum == null || checksum === bodyChecksum(profile)
  }
}

function bodyOf ({ name: _, seed: __, ...profile }: NamedProfile): Profile {
  return profile
}

function firstIssue (error: z.ZodError): string {
  const { path, message } = error.issues[0]!
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}
