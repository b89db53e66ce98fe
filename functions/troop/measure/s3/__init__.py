"""Signs and sends requests to S3 without the AWS CLI, which takes half a second of processor time for each."""
