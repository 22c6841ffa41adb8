import { stat } from 'node:fs/promises'
import {
  defineRoute, isSvcError, svcError, type ActivityLog, type AnyRoute, type ConfigService, type EventBus, type RouteCall,
  type UpstreamService
} from 'svc-gateway/plugin'
import { secretError } from './errors.js'
import { guardKey } from './key-guard.js'
import { nameParamsSchema, SECRET_NAME, SECRET_VALUE, secretListSchema, valueBodySchema } from './schemas.js'

export interface SecretServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly events: EventBus
  readonly upstreams: UpstreamService
}

/** Half of a character, which no file can hold. */
const LONE_SURROGATE = /\p{Cs}/u
/** Longest value, in characters. */
const MAX_VALUE = 8192
const MASKED = '•'.repeat(8)

export function secretRoutes (services: SecretServices): AnyRoute[] {
  const { config } = services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/secrets',
      summary: 'Names of the secrets that are set, never their values',
      schema: { response: secretListSchema },
      handler: async () => {
        const written = await stat(config.paths.secretsEnv).catch(() => null)
        return {
          secrets: config.secretNames().map(name => ({
            name, set: true as const, masked: MASKED, updated_at: written?.mtime.toISOString() ?? null
          }))
        }
      }
    }),
    ...(['POST', 'PUT'] as const).map(method => defineRoute({
      method,
      url: '/api/secrets/:name',
      summary: 'Set a secret',
      description: 'Names are `[A-Z][A-Z0-9_]*`, at most 64 characters. The value goes to the environment file of the gateway. If upstreams already use the variable, `upstreams` must list those that may send it.',
      schema: { params: nameParamsSchema, body: valueBodySchema },
      example: { value: 'hf_your_token' },
      status: 204,
      handler: async call => {
        const { params: { name }, body: { value, upstreams = [] } } = call
        requireName(name)
        requireValue(value)
        guardKey(name, upstreams, services.upstreams)
        await audited(services, call, 'set', name, () => config.setSecret(name, value))
        tell(services, 'system.secret_updated', name, 'was set')
      }
    })),
    defineRoute({
      method: 'DELETE',
      url: '/api/secrets/:name',
      summary: 'Remove a secret; a missing one is no error',
      schema: { params: nameParamsSchema },
      handler: async call => {
        const { name } = call.params
        requireName(name)
        const had = await audited(services, call, 'delete', name, () => config.deleteSecret(name))
        if (had) tell(services, 'system.secret_deleted', name, 'was removed')
      }
    })
  ]
}

function requireName (name: string): void {
  if (SECRET_NAME.test(name)) return
  throw svcError('secret.name_invalid', 'the name of a secret has capital letters, digits and _, starts with a letter, and is at most 64 characters long',
    { param: 'name' })
}

/** What is wrong is said without any of it. */
function requireValue (value: string): void {
  const isPrintable = SECRET_VALUE.test(value) && !LONE_SURROGATE.test(value)
  const problem = value === '' ? 'is empty; delete the secret instead' : value.length > MAX_VALUE ? `must have at most ${MAX_VALUE} characters`
    : isPrintable ? null : 'must be one line of printable characters'
  if (problem !== null) throw secretError('secret.value_invalid', `the value ${problem}`, { param: 'value' })
}

/** Who set which secret and how that ended; the row has no value to hold. */
function audited<T> (
  { activity }: SecretServices, { actor, requestId }: Pick<RouteCall, 'actor' | 'requestId'>, verb: string, name: string,
  work: () => Promise<T>
): Promise<T> {
  const row = { category: 'secrets', action: `secrets.${verb}`, target: name, actor, request_id: requestId }
  return activity.audited(row, () => work().catch(asWriteFailure))
}

function asWriteFailure (error: unknown): never {
  if (!isSvcError(error) || error.code !== 'config.write_failed') throw error
  throw secretError('secret.write_failed', error.message, { details: error.details, cause: error })
}

function tell ({ events }: SecretServices, type: string, name: string, what: string): void {
  events.emit({ type, source: `secret:${name}`, message: `secret ${name} ${what}`, data: { name } })
}
