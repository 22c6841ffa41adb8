import { Option, type Command } from 'commander'
import { authStyles, upstreamSchema, type AuthStyle } from '../../../kernel/contract/schemas/index.js'
import { numberOf, textOf } from '../../option-value.js'

const { shape } = upstreamSchema

/** What `add` and `edit` can say of an upstream. */
export interface UpstreamOptions {
  readonly auth?: AuthStyle
  readonly authHeader?: string
  readonly keyEnv?: string
  readonly timeout?: number
  readonly retries?: number
  readonly fallback?: readonly string[]
  readonly models?: readonly string[]
  readonly hide?: readonly string[]
  readonly advertise?: boolean
}

export function addUpstreamOptions (command: Command): Command {
  return command
    .addOption(new Option('--auth <style>', 'how its key is sent').choices(authStyles))
    .option('--auth-header <name>', 'header for the key, with --auth header')
    .addOption(new Option('--key-env <name>', 'variable that holds the key; never the key itself').argParser(textOf(shape.auth_value_env.removeDefault())))
    .addOption(new Option('--timeout <seconds>', 'longest wait for the first byte of an answer').argParser(numberOf(shape.timeout_seconds.removeDefault())))
    .addOption(new Option('--retries <n>', 'retries after a failure').argParser(numberOf(shape.retries.removeDefault())))
    .option('--fallback <places>', 'where failed requests go: slots, models, upstreams, separated by commas; none removes all', listOf)
    .option('--models <ids>', 'list only these models, separated by commas; none removes all', listOf)
    .option('--hide <patterns>', 'models to hide, separated by commas; * matches anything; none removes all', listOf)
    .option('--advertise', 'list its models in /v1/models')
    .option('--no-advertise', 'do not list its models in /v1/models')
}

/** The body of the API; what was not given is not in it. */
export function bodyOf (options: UpstreamOptions): Record<string, unknown> {
  const { auth, authHeader, keyEnv, timeout, retries, fallback, models, hide, advertise } = options
  return {
    auth_style: auth,
    auth_header: authHeader,
    auth_value_env: keyEnv,
    timeout_seconds: timeout,
    retries,
    fallback,
    advertise_models: advertise,
    ...(models === undefined && hide === undefined ? {} : { model_filters: { models, exclude: hide } })
  }
}

function listOf (text: string): string[] {
  return text === 'none' ? [] : text.split(',').map(part => part.trim()).filter(part => part !== '')
}
