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
    description: 'Lists the other servers that this gateway passes requests on to, and how they are. Call it when a model of an upstream does not answer.',
    readOnly: true,
    short: (rows: readonly Row[]) => ({ upstreams: rows.map(shortRow), count: rows.length })
  },
  providers: {
    name: 'provider_list',
    title: 'List remote providers',
    description: 'Lists the remote providers of models that are set up, and whether their keys are there. Call it before writing a key.',
    readOnly: true,
    short: (rows: readonly Row[]) => ({ providers: rows.map(shortRow), count: rows.length })
  },
  credential: {
    name: 'provider_credential_write',
    title: 'Write the key of a provider',
    description: 'Writes the key of a remote provider, under the variable that the provider names. Call it only with a key that the user gave; an operator has to approve it.',
    gated: true,
    destructive: false,
    idempotent: true,
    primary: 'name',
    secrets: ['value']
  }
} satisfies Record<string, RouteTool>
