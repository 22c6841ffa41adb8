/** What `svc plugin new` can write. */
export const templateKinds = ['engine', 'routes', 'service', 'tools'] as const
export type TemplateKind = typeof templateKinds[number]
