  .launch = launch,
