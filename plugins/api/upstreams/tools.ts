import type { RouteTool } from 'svc-gateway/plugin'

type Row = Record<'name' | 'kind' | 'url' | 'enabled' | 'auth_key_present' | 'error' | 'circuit', unknown> & { readonly models: readonly string[] }

function shortRow ({ name, kind, url, enabled, auth_key_present: hasKey, error, circuit, models }: Row): Record<string, unknown> {
  return { name, kind, url, enabled, key_present: hasKey, models: models.length, ...(error === null ? {} : { error }), circuit }
}

/** What agents may do with upstreams. */
export const upstreamTools = {
  list: {
    name: 'upstream_list',
    title: 'List upstreams',
    description: 'Lists the upstreams that this gateway forwards requests to, and their states. Call it when a model of an upstream does not answer.',
    readOnly: true,
    short: (rows: readonly Row[]) => ({ upstreams: rows.map(shortRow), count: rows.length })
  },
  providers: {
    name: 'provider_list',
    title: 'List remote providers',
    description: 'Lists the configured remote providers of models, and whether their keys are set. Call it before writing a key.',
    readOnly: true,
    short: (rows: readonly Row[]) => ({ providers: rows.map(shortRow), count: rows.length })
  },
  credential: {
    name: 'provider_credential_write',
    title: 'Write the key of a provider',
    description: 'Sets the key of a remote provider, in the variable of the provider. Call it only with a key that the user gave; an operator has to approve it.',
    gated: true,
    destructive: false,
    idempotent: true,
    primary: 'name',
    secrets: ['value']
  }
} satisfies Record<string, RouteTool>
