import { graphql } from 'relay-runtime';

// What a page that shows threads asks for. relay-compiler reads it; it is not run, its artifacts are.

export const documents = () => [
  graphql`
    fragment thread_event on TimelineEvent {
      __typename
      id
      seq
      at
      ... on Message {
        content
        clientKey
        isRetracted
        sender {
          id
          displayName
        }
      }
      ... on ParticipantStateChanged {
        transition
        participant {
          id
          displayName
        }
      }
    }
  `,
  graphql`
    query threadSidebarQuery {
      threads(first: 20) {
        nodes {
          id
          unreadCount
          lastMessage {
            id
            content
          }
        }
      }
    }
  `,
  graphql`
    query threadPageQuery($threadId: ID!, $before: Cursor) {
      thread(id: $threadId) {
        id
        timeline {
          id
          end
          events(last: 10, before: $before) @connection(key: "thread_events") {
            edges {
              cursor
              node {
                ...thread_event @relay(mask: false)
              }
            }
            pageInfo {
              hasPreviousPage
              startCursor
            }
          }
        }
      }
    }
  `,
  graphql`
    mutation threadPostMutation($input: PostMessageInput!) {
      postMessage(input: $input) {
        edge {
          cursor
          node {
            ...thread_event @relay(mask: false)
          }
        }
      }
    }
  `,
  graphql`
    subscription threadLiveSubscription($threadId: ID!, $after: Cursor) {
      timeline(threadId: $threadId, after: $after) {
        cursor
        event {
          ...thread_event @relay(mask: false)
        }
      }
    }
  `,
  graphql`
    subscription threadLiveSidebarSubscription {
      threads {
        thread {
          id
          unreadCount
          lastMessage {
            id
            content
          }
        }
      }
    }
  `,
];
