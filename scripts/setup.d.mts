/** What tests use of the set-up. Builds `dist` if the sources have changed since; whether it did. */
export const build: () => Promise<boolean>;
