/** Words for the files that `svc config edit` opens, besides `slots/<name>` and `agents/<name>`. */
export const editableNames = ['svc', 'upstreams', 'providers', 'profiles', 'stacks', 'capabilities'] as const
