// eslint-disable-next-line no-restricted-imports -- the one place where plugins meet the kernel
export * from '../kernel/contract/index.js'
