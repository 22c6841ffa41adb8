export const channels = ['stable', 'nightly'] as const
export type Channel = typeof channels[number]
